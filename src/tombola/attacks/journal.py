"""Finished examples on disk, line by line, so that a killed attack goes on where it stopped."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tombola.errors import DamagedArtefact, TombolaError


class Journal:
    """A JSON-lines file: a header that names the run's settings, then one record for each finished example.

    A last line without its end is what a kill leaves behind: it is cut off and its example done again.
    """

    def __init__(self, path: str | Path, settings: dict[str, Any]) -> None:
        self.path, self.settings = Path(path), settings

    def __enter__(self) -> Self:
        """Read what is there, check that it is of the same run, and open the file to go on writing."""
        self.records: list[dict[str, Any]] = []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = self._read_whole_lines()
        if whole:
            self._check(whole[0])
            self.records = [self._parsed(line, number) for number, line in enumerate(whole[1:], start=2)]
        self._file = self.path.open("ab")
        self._file.truncate(sum(map(len, whole)))
        if not whole:
            self._write({"tombola attack": self.settings})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, record: dict[str, Any]) -> None:
        """Write a finished example; it is on disk when this returns."""
        self.records.append(record)
        self._write(record)

    def _write(self, content: dict[str, Any]) -> None:
        self._file.write(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read_whole_lines(self) -> list[bytes]:
        if not self.path.is_file():
            return []
        return [line for line in self.path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]

    def _check(self, header: bytes) -> None:
        found = self._parsed(header, 1).get("tombola attack")
        if found != self.settings:
            theirs = found if isinstance(found, dict) else {}
            differing = sorted(key for key in self.settings if theirs.get(key) != self.settings[key])
            raise TombolaError(
                f"{self.path} belongs to an attack with another {', '.join(differing)}: "
                "remove the file to begin anew, or give another path."
            )

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            content = json.loads(line.decode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise DamagedArtefact(f"{self.path}:{number}: not JSON ({error}); remove the file.") from None
        if not isinstance(content, dict):
            raise DamagedArtefact(f"{self.path}:{number}: not a record of an attack; remove the file.")
        return content
