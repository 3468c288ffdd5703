"""Inputs as strangers and broken disks make them: mutations of sound files, drawn from a seed."""

import random
from collections.abc import Callable

NASTY = [
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\x85", b"\x1b[31m", b"\r", b"\t", b"\n\n",
    b"!!int x", b"!!python/object/apply:os.system [id]", b"2020-99-99", b"9" * 5000, b"1e999", b"-1", b".nan",
    b"&a [*a]", b"*missing", b"{a: b}", b"[[]]", b"? [a]\n: b\n", b"null", b"~", b"''", b"- ", b": ", b"#", b"<<: 1",
    b"[" * 200, b"{" * 5000, b'{"a":' * 3000, b"../../etc/passwd", b"/dev/zero", b"seed: 4294967296\n",
    b"per_task: x\n", b"method: {a: b}\n", b'"' * 3, b"\\ud800", b"x" * 140_000,
    b"seed: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", b"name: ..\n",
    b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\n",
]  # fmt: skip


def _flip(content: bytearray, rng: random.Random) -> None:
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _insert(content: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(content))
    content[place:place] = rng.choice(NASTY)


def _replace_value(content: bytearray, rng: random.Random) -> None:
    """Put something else after a colon or a tab."""
    places = [at + 1 for at, byte in enumerate(content) if byte in b":\t,"] or [0]
    start = rng.choice(places)
    end = content.find(b"\n", start)
    content[start : end if end >= 0 else len(content)] = b" " + rng.choice(NASTY)


def _truncate(content: bytearray, rng: random.Random) -> None:
    del content[rng.randrange(len(content)) :]


def _drop_line(content: bytearray, rng: random.Random) -> None:
    lines = bytes(content).splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    content[:] = b"".join(lines)


def _double_line(content: bytearray, rng: random.Random) -> None:
    lines = bytes(content).splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    content[:] = b"".join(lines)


def _swap(content: bytearray, rng: random.Random) -> None:
    lines = bytes(content).splitlines(keepends=True)
    rng.shuffle(lines)
    content[:] = b"".join(lines)


MUTATIONS: list[Callable[[bytearray, random.Random], None]] = [
    *(_flip, _insert, _insert, _replace_value, _replace_value, _replace_value),
    *(_truncate, _drop_line, _double_line, _swap),
]


def mutated(content: bytes, seed: str) -> bytes:
    """The content after one to three random changes."""
    rng, changed = random.Random(seed), bytearray(content)
    for _ in range(rng.randint(1, 3)):
        if changed:
            rng.choice(MUTATIONS)(changed, rng)
    return bytes(changed)
