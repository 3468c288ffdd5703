"""A store far away: any place that fsspec can reach, such as `s3://bucket/tickets`.

Object stores have neither renames nor locks. A stage is therefore uploaded to a folder of its own, and a small file
that points to this folder is written last: what is pointed to is whole. Two machines that make the same stage at
the same time do the work twice, and the first pointer stands.
"""

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import fsspec

from tombola.errors import TombolaError
from tombola.foundations.paths import inside
from tombola.store.manifest import MANIFEST, read_manifest, verify


def is_url(root: object) -> bool:
    """Whether a store is named by a URL and not by a folder."""
    return "://" in str(root)


class Remote:
    """Finished stages at an fsspec URL, copied here when they are needed."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            self.files, self.root = fsspec.core.url_to_fs(self.url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise TombolaError(
                f"the store {url} cannot be reached: {error}. For s3://, pip install 'tombola[s3]'"
            ) from None

    def has(self, name: str) -> bool:
        """Whether a stage, named kind/key, is there."""
        return bool(self.files.exists(self._pointer(name)))

    def names(self) -> set[str]:
        """The names of all stages that are there, by one listing."""
        found = self.files.glob(f"{self.root}/*/*.json")
        return {"/".join(path.removesuffix(".json").split("/")[-2:]) for path in found}

    def manifest(self, name: str) -> dict[str, Any]:
        """The manifest of a stage that is there."""
        manifest: dict[str, Any] = json.loads(self.files.cat_file(f"{self._at(name)}/{MANIFEST}"))
        return manifest

    def push(self, name: str, folder: Path) -> None:
        """Upload a finished folder, unless another machine was faster."""
        at = f"{self.root}/{name}/{uuid.uuid4().hex}"
        try:
            for file in [*read_manifest(folder)["files"], MANIFEST]:
                self.files.makedirs(os.path.dirname(f"{at}/{file}"), exist_ok=True)
                self.files.put_file(str(folder / file), f"{at}/{file}")
            if self.has(name):
                self.files.rm(at, recursive=True)
            else:
                self.files.pipe_file(self._pointer(name), json.dumps({"at": at.rsplit("/", 1)[-1]}).encode())
        except OSError as error:
            raise TombolaError(
                f"{folder} is finished but could not be uploaded to {self.url}: {error}. "
                "The same command tries again, without running the stage a second time"
            ) from error

    def pull(self, name: str, final: Path) -> None:
        """Download a stage, check it, and show it under its name only when it is whole."""
        partial = final.with_name(f"{final.name}.{uuid.uuid4().hex}.fetch")
        partial.mkdir(parents=True)
        try:
            at = self._at(name)
            self.files.get_file(f"{at}/{MANIFEST}", str(partial / MANIFEST))
            for file in read_manifest(partial)["files"]:
                path = inside(partial, file)
                path.parent.mkdir(parents=True, exist_ok=True)
                self.files.get_file(f"{at}/{file}", str(path))
            verify(partial)
            if not final.exists():
                partial.rename(final)
        except (OSError, ValueError, KeyError) as error:
            raise TombolaError(f"{self.url}/{name} could not be downloaded: {error}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}/{json.loads(self.files.cat_file(self._pointer(name)))['at']}"

    def _pointer(self, name: str) -> str:
        return f"{self.root}/{name}.json"
