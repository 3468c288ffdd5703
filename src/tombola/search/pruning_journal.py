"""What is done of a pruning layer by layer: kept beside the output, so that the same call goes on after a kill."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.foundations.checksums import CHECKSUMS, hash_text
from tombola.foundations.lazy import lazy_module
from tombola.models.skeleton import Skeleton

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tombola import masks
    from tombola.masks import Mask, Units
else:
    torch, masks = lazy_module("torch"), lazy_module("tombola.masks")

PRUNED = "pruned.json"
"""The file that says how a model folder was pruned."""
JOURNAL = "journal.json"


class Journal:
    """What is done of a pruning, in a folder beside the output that survives a kill."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder, self.identity = folder, identity
        self.model = folder / "model"
        self.done = 0
        self.digests: dict[str, str] = {}

    @classmethod
    @contextmanager
    def opened(cls, output: Path, skeleton: Skeleton, described: Mapping[str, Any]) -> Iterator[Journal]:
        """The journal of the same pruning that was killed, or a new one."""
        source = skeleton.shards.folder
        stamps = [
            (name, (source / name).stat().st_size, (source / name).stat().st_mtime_ns)
            for name in skeleton.shards.files
        ]
        config = (source / "config.json").read_text(encoding="utf-8")
        identity = hash_text(json.dumps([described, stamps, config], sort_keys=True))
        journal = cls(output.with_name(f".{output.name}.pruning"), identity)
        if not journal._read():
            journal._begin(skeleton)
        yield journal

    def _read(self) -> bool:
        try:
            noted = json.loads((self.folder / JOURNAL).read_bytes())
        except (OSError, ValueError):
            return False
        if noted["identity"] != self.identity:
            return False
        self.done, self.digests = noted["done"], noted["digests"]
        return True

    def _begin(self, skeleton: Skeleton) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.model.mkdir(parents=True)
        for name in skeleton.shards.files:
            shutil.copyfile(skeleton.shards.folder / name, self.model / name)
        _copy_companions(skeleton.shards.folder, self.model)
        self._write()

    def _write(self) -> None:
        noted = {"identity": self.identity, "done": self.done, "digests": self.digests}
        new = self.folder / f"{JOURNAL}.new"
        new.write_text(json.dumps(noted), encoding="utf-8")
        os.replace(new, self.folder / JOURNAL)

    def note_digests(self, index: int, skeleton: Skeleton, units: Units) -> None:
        """Remember what the layer's weights were, for the mask's fingerprint."""
        from tombola.masks.base import digest_of, fingerprinted

        whole = masks.Layout.of(skeleton.model)
        own = {matrix.tensor for matrix in whole.matrices if matrix.layer == index}
        for name in fingerprinted(whole):
            if name in own:
                self.digests[name] = digest_of(skeleton.model.get_parameter(name)).hex()

    def note(self, index: int, kept: Mapping[str, Tensor], hidden: list[Tensor]) -> None:
        """A layer is done: keep its mask, and what the next one reads."""
        from safetensors.torch import save_file

        from tombola.masks.bits import pack

        save_file(
            {name: torch.from_numpy(pack(one)) for name, one in kept.items()},
            self.folder / f"mask-{index}.safetensors",
        )
        before, after = self._hidden(index), self._hidden(index + 1)
        if hidden:
            shutil.rmtree(after, ignore_errors=True)
            after.mkdir()
            for number, one in enumerate(hidden):
                save_file({"hidden": one.cpu().contiguous()}, after / f"{number}.safetensors")
        self.done = index + 1
        self._write()
        shutil.rmtree(before, ignore_errors=True)

    def _hidden(self, index: int) -> Path:
        return self.folder / f"hidden-{index}"

    def hidden(self, count: int, device: str) -> list[Tensor]:
        """What the next layer reads, by batch."""
        from safetensors.torch import load_file

        files = [self._hidden(self.done) / f"{number}.safetensors" for number in range(count)]
        return [load_file(file, device=device)["hidden"] for file in files]

    def mask(self, units: Units, skeleton: Skeleton) -> Mask:
        """The mask of all layers, with the fingerprint of the model as it was."""
        from safetensors.numpy import load_file

        from tombola.masks.base import fingerprinted, with_digests

        found: dict[str, Any] = {}
        for index in range(self.done):
            found |= load_file(self.folder / f"mask-{index}.safetensors")
        whole = masks.Layout.of(skeleton.model)
        digests = (bytes.fromhex(self.digests[name]) for name in fingerprinted(whole))
        base = with_digests(units.base, whole, digests)
        return masks.Mask(replace(units, base=base), found)

    def finish(self, output: Path, mask: Mask, described: Mapping[str, Any]) -> None:
        """Put the pruned model in its place."""
        mask.save(self.model / masks.MASK)
        told = {**described, "base": mask.base.fingerprint, "removed": mask.removed, "of": mask.count}
        (self.model / PRUNED).write_text(json.dumps(told, indent=1), encoding="utf-8")
        with suppress(FileNotFoundError):
            output.rmdir()
        self.model.rename(output)
        shutil.rmtree(self.folder, ignore_errors=True)


def _copy_companions(source: Path, target: Path) -> None:
    from tombola.shrink.folders import copy_companions

    copy_companions(source, target, without=(CHECKSUMS, PRUNED, "ticket.json"))
