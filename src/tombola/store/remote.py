"""A remote store: any location that fsspec can reach, such as `s3://bucket/tickets`.

Object stores have neither renames nor locks. A stage is therefore uploaded to a new folder, and a small file that
points to this folder is written last, so it only ever points to complete stages. Two machines that make the same stage
at the same time do the work twice, and the first pointer wins.
"""

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import fsspec

from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.paths import inside
from tombola.store.manifest import MANIFEST, parse_manifest, read_manifest, verify

_UPLOAD = re.compile(r"[0-9a-f]{32}")
_STAGE = re.compile(r"[a-z0-9_]+/[0-9a-f]{24}")


def is_url(root: object) -> bool:
    """Return whether a store is a URL rather than a folder."""
    return "://" in str(root)


class Remote:
    """Finished stages at an fsspec URL, downloaded when needed."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            self.files, self.root = fsspec.core.url_to_fs(self.url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise TombolaError(
                f"the store {url} cannot be reached: {error}. For s3://, pip install 'tombola[s3]'"
            ) from None

    def has(self, name: str) -> bool:
        """Return whether the store has a stage, named kind/key."""
        with self._reached():
            return bool(self.files.exists(self._pointer(name)))

    def names(self) -> set[str]:
        """Return the names of all stages in the store, with a single listing."""
        with self._reached():
            paths = self.files.glob(f"{self.root}/*/*.json")
        names = {"/".join(path.removesuffix(".json").split("/")[-2:]) for path in paths}
        return {name for name in names if _STAGE.fullmatch(name)}

    def manifest(self, name: str) -> dict[str, Any]:
        """Read the manifest of a stage in the store."""
        where = f"{self.url}/{name}"
        with self._read(name, "read"):
            content = self.files.cat_file(f"{self._folder_of(name)}/{MANIFEST}")
        return parse_manifest(content, f"{where}/{MANIFEST}", self._remedy(name))

    def push(self, name: str, folder: Path) -> None:
        """Upload a finished folder, unless another machine was faster."""
        at = f"{self.root}/{name}/{uuid.uuid4().hex}"
        with _explained(
            f"{folder} is finished but could not be uploaded to {self.url}",
            ". Run the same command to try again; the stage does not run a second time",
        ):
            for file in [*verify(folder)["files"], MANIFEST]:
                self.files.makedirs(os.path.dirname(f"{at}/{file}"), exist_ok=True)
                self.files.put_file(str(inside(folder, file)), f"{at}/{file}")
            if self.files.exists(self._pointer(name)):
                self.files.rm(at, recursive=True)
            else:
                self.files.pipe_file(self._pointer(name), json.dumps({"at": at.rsplit("/", 1)[-1]}).encode())

    def pull(self, name: str, final: Path) -> None:
        """Download and check a stage, and give it its final name only when it is complete."""
        partial = final.with_name(f"{final.name}.{uuid.uuid4().hex}.fetch")
        partial.mkdir(parents=True)
        try:
            with self._read(name, "downloaded"):
                at = self._folder_of(name)
                self.files.get_file(f"{at}/{MANIFEST}", str(partial / MANIFEST))
                for file in read_manifest(partial)["files"]:
                    path = inside(partial, file)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    self.files.get_file(f"{at}/{file}", str(path))
                verify(partial)
                _take_place(partial, final)
        except DamagedArtefact as error:
            raise DamagedArtefact(
                f"{self.url}/{name} is damaged there ({error}); {self._remedy(name)}"
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def orphans(self) -> Iterator[str]:
        """Yield interrupted or duplicate uploads, which nothing points to and which can be deleted.

        An upload in progress looks the same.
        """
        finished = self.names()
        with self._reached():
            paths = self.files.glob(f"{self.root}/*/*/*")
        for path in paths:
            kind, key, upload = path.rstrip("/").split("/")[-3:]
            if not (_STAGE.fullmatch(f"{kind}/{key}") and _UPLOAD.fullmatch(upload)):
                continue
            try:
                with self._reached():
                    current = self._folder_of(f"{kind}/{key}") if f"{kind}/{key}" in finished else ""
            except DamagedArtefact:
                current = ""
            if not current.endswith(f"/{upload}"):
                yield f"{self.url}/{kind}/{key}/{upload}"

    def damaged(self) -> Iterator[tuple[str, str | None]]:
        """Yield every stage in the store, with the problem if a file is missing or has the wrong size, or None."""
        for name in sorted(self.names()):
            try:
                files = self.manifest(name)["files"]
                with self._read(name, "read"):
                    at = self._folder_of(name)
                    found = self.files.find(at, detail=True)
            except TombolaError as error:
                yield name, str(error)
                continue
            sizes = {path.removeprefix(f"{at}/"): entry["size"] for path, entry in found.items()}
            wrong = [file for file, entry in files.items() if sizes.get(file) != entry["size"]]
            where = f"{self.url}/{name}"
            yield (
                name,
                f"{where}: {wrong[0]} is missing or truncated; {self._remedy(name)}" if wrong else None,
            )

    def _folder_of(self, name: str) -> str:
        """Return the path of a stage's files. The pointer is not trusted: anyone may have written it."""
        try:
            upload = json.loads(self.files.cat_file(self._pointer(name)))["at"]
        except (ValueError, KeyError, TypeError, RecursionError):
            upload = None
        if not (isinstance(upload, str) and _UPLOAD.fullmatch(upload)):
            raise DamagedArtefact(f"{self.url}/{name}.json does not point to a stage; {self._remedy(name)}")
        return f"{self.root}/{name}/{upload}"

    def _reached(self) -> AbstractContextManager[None]:
        return _explained(f"the store {self.url} cannot be reached")

    def _read(self, name: str, done: str) -> AbstractContextManager[None]:
        """Explain why a stage could not be read: only one that lacks a file must be deleted."""
        again = "; run the same command to try again"
        return _explained(f"{self.url}/{name} could not be {done}", again, f"; {self._remedy(name)}")

    def _remedy(self, name: str) -> str:
        return f"delete {self.url}/{name}.json, and run the same command to create it again"

    def _pointer(self, name: str) -> str:
        return f"{self.root}/{name}.json"


def _take_place(partial: Path, final: Path) -> None:
    """Give a complete download its final name, unless another process has been faster."""
    try:
        partial.rename(final)
    except OSError:
        if not (final / MANIFEST).is_file():
            raise


@contextmanager
def _explained(what: str, remedy: str = "", if_missing: str | None = None) -> Iterator[None]:
    """Raise any error of a location as a sentence: its library has errors of its own, as for lacking credentials."""
    try:
        yield
    except TombolaError:
        raise
    except Exception as error:
        missing = isinstance(error, FileNotFoundError) and if_missing is not None
        raise TombolaError(f"{what}: {_reason(error)}{if_missing if missing else remedy}") from error


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300].rstrip(".")
