"""Finished examples on disk, line by line, so that a killed attack resumes where it stopped."""

import json
import logging
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tombola.errors import TombolaError
from tombola.foundations.checksums import hash_text, write_whole

logger = logging.getLogger(__name__)


class AttackJournal:
    """A JSON-lines file: a header with the run's settings, then one record per finished example.

    Every line begins with its checksum. A line that does not match is damaged or was cut off by a kill: it is removed
    and its example attacked again. Without a valid header, the whole file is discarded, and so is that of another
    attack that failed before it had attacked an example.
    """

    def __init__(self, path: str | Path, settings: dict[str, Any]) -> None:
        self.path, self.settings = Path(path), settings

    def __enter__(self) -> Self:
        """Read existing records, check that they belong to the same run, and open the file for appending."""
        self.records: list[dict[str, Any]] = []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        header, *lines = self._read_lines() or [None]
        records = [line for line in lines if line is not None]
        anew = header is None or (header != self._header and not any(map(_is_attacked, records)))
        if header is not None and not anew:
            self._check(header)
            self.records = records
        if dropped := lines.count(None) + (header is None and self.path.is_file()):
            logger.warning(
                "%s: %d damaged lines are discarded, and their examples attacked again", self.path, dropped
            )
        if dropped or anew:
            rows = [self._header, *self.records]
            write_whole(self.path, "".join(map(_line, rows)), errors="surrogatepass", newline="\n")
        self._file = self.path.open("ab")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def _header(self) -> dict[str, Any]:
        return {"tombola attack": self.settings}

    def append(self, record: dict[str, Any]) -> None:
        """Write a finished example to disk before returning."""
        self.records.append(record)
        self._write(record)

    def _write(self, content: dict[str, Any]) -> None:
        self._file.write(_line(content).encode("utf-8", "surrogatepass"))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read_lines(self) -> list[dict[str, Any] | None]:
        """Return the content of every line; None for a damaged or incomplete one."""
        if not self.path.is_file():
            return []
        return [_parsed(line) for line in self.path.read_bytes().split(b"\n") if line]

    def _check(self, header: dict[str, Any]) -> None:
        settings = header.get("tombola attack")
        if settings != self.settings:
            theirs = settings if isinstance(settings, dict) else {}
            differing = sorted(key for key in self.settings if theirs.get(key) != self.settings[key])
            raise TombolaError(
                f"{self.path} belongs to another attack, which differs in {', '.join(differing)}: delete the file "
                "to start over, or use another path."
            )


def _is_attacked(record: dict[str, Any]) -> bool:
    """Return whether a record took more than a look at the model's own mistake."""
    return record.get("result_type") != "Skipped"


def _line(content: dict[str, Any]) -> str:
    text = json.dumps(content, ensure_ascii=False)
    return f"{hash_text(text)} {text}\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    digest, _, text = line.partition(b" ")
    try:
        decoded = text.decode("utf-8", "surrogatepass")
        content = json.loads(decoded) if hash_text(decoded) == digest.decode() else None
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
