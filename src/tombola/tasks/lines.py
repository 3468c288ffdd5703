"""Read lines of text files, compressed or not, and recognise their encoding by a byte-order mark."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import IO, cast

from tombola.errors import DataError

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, since it begins with the same bytes
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def ending_of(path: Path) -> str:
    """Return the file's suffix, without `.gz` if it is compressed."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()


def numbered_lines(path: Path, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without their line ends. Blank lines at the end of the file are dropped, others are not.

    Without an `encoding`, a byte-order mark decides; without a mark, the text is UTF-8.
    """
    blank: list[int] = []
    number = 0
    try:
        with _opened(path) as stream:
            known = encoding or marked_encoding(stream)
            text = io.TextIOWrapper(stream, known or "utf-8", newline="\n")
            for number, line in enumerate(text, start=1):
                if "\0" in line:
                    raise DataError(_binary(path, number, line.encode()))
                line = line.rstrip("\r\n")
                if not line.strip():
                    blank.append(number)
                    continue
                yield from ((missed, "") for missed in blank)
                blank.clear()
                yield number, line
    except UnicodeDecodeError as error:
        raise DataError(_undecodable(path, encoding, error)) from None


def read_text(path: Path, encoding: str | None = None) -> str:
    """Return the whole text of a file, with the encoding chosen as for `numbered_lines`."""
    try:
        with _opened(path) as stream:
            text = stream.read().decode(encoding or marked_encoding(stream) or "utf-8")
            if "\0" in text:
                before = text[: text.index("\0") + 1]
                raise DataError(_binary(path, before.count("\n") + 1, before.encode()))
            return text
    except UnicodeDecodeError as error:
        raise DataError(_undecodable(path, encoding, error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            yield cast(IO[bytes], stream)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}); download it again.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None


def marked_encoding(stream: IO[bytes]) -> str | None:
    """Return the encoding of a byte-order mark at the start of a stream, if any.

    Args:
        stream: The stream, which is left at its start.
    """
    first = stream.read(4)
    stream.seek(0)
    return next((name for mark, name in _MARKS.items() if first.startswith(mark)), None)


def recognised_encoding(path: Path) -> str | None:
    """Guess the encoding of a text file that is neither UTF-8 nor marked; None if the default works.

    Args:
        path: The file.
    """
    with _opened(path) as stream:
        if marked_encoding(stream):
            return None
        decoder = codecs.getincrementaldecoder("utf-8")()
        windows = codecs.getincrementaldecoder("cp1252")()
        utf8 = western = True
        while block := stream.read(1 << 20):
            if b"\0" in block:
                wide = block.count(0) > len(block) / 4  # every second byte of Latin letters is 0
                return f"utf-16-{_byte_order(block)}" if wide else None
            utf8 = utf8 and _feeds(decoder, block)
            western = western and _feeds(windows, block)
        utf8 = utf8 and _feeds(decoder, b"", final=True)
    return None if utf8 else "cp1252" if western else "iso8859-1"


def encoding_of_new(path: Path, expected: str | None) -> str | None:
    """Return the encoding of a file that may come from elsewhere than the data whose encoding is `expected`.

    That is None, the default, if the file is UTF-8 beyond doubt: texts in another encoding hardly ever are by chance.

    Args:
        path: The file.
        expected: The encoding of the task's own files; None for the default.
    """
    if expected is None or not path.is_file():
        return expected
    with _opened(path) as stream:
        plain = all(block.isascii() for block in iter(lambda: stream.read(1 << 20), b""))
    return expected if plain or recognised_encoding(path) is not None else None


def _feeds(decoder: codecs.IncrementalDecoder, block: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _byte_order(raw: bytes) -> str:
    """Return the byte order, by which byte of Latin letters is 0."""
    return "le" if raw.index(b"\0") % 2 else "be"


def _undecodable(path: Path, encoding: str | None, error: UnicodeDecodeError) -> str:
    """Explain which line cannot be decoded, and what to do."""
    with _opened(path) as stream:
        for place, raw in enumerate(stream, start=1):
            if encoding is None and b"\0" in raw:
                return _binary(path, place, raw)
            if not _decodes(raw, error.encoding):
                break
    if encoding is not None:
        return (
            f"{path}:{place}: not {encoding} text ({error.reason}): set `source.encoding` in the task file to the "
            "encoding of the file."
        )
    return (
        f"{path}:{place}: not UTF-8 text ({error.reason}). If it was written on Windows it is probably cp1252 "
        "(Latin-1): set `source.encoding: cp1252` in the task file, or convert it with "
        f"`iconv -f WINDOWS-1252 -t UTF-8 {quote(path.name)}`."
    )


def _decodes(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _binary(path: Path, line: int, raw: bytes) -> str:
    return (
        f"{path}:{line}: contains a NUL byte, so it is not UTF-8 text: if the file is UTF-16 without a byte-order "
        f"mark, set `source.encoding: utf-16-{_byte_order(raw)}` in the task file; otherwise it is binary or damaged."
    )
