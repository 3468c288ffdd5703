"""A journal of layer-by-layer pruning, kept next to the output so that the same call resumes after a kill."""

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
    from tombola.masks.bits import Bits
else:
    torch, masks = lazy_module("torch"), lazy_module("tombola.masks")

PRUNED = "pruned.json"
"""The file that records how a model folder was pruned."""
JOURNAL = "journal.json"


class PruningJournal:
    """The progress of a pruning, in a folder next to the output that survives a kill."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder, self.identity = folder, identity
        self.model = folder / "model"
        self.done = 0
        self.digests: dict[str, str] = {}

    @classmethod
    @contextmanager
    def opened(
        cls, output: Path, skeleton: Skeleton, described: Mapping[str, Any]
    ) -> Iterator[PruningJournal]:
        """Open the journal of the same pruning if it was interrupted, or a new one."""
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
        from tombola.shrink.folders import copy_companions

        shutil.rmtree(self.folder, ignore_errors=True)
        self.model.mkdir(parents=True)
        for name in skeleton.shards.files:
            shutil.copyfile(skeleton.shards.folder / name, self.model / name)
        copy_companions(skeleton.shards.folder, self.model, without=(CHECKSUMS, PRUNED, "ticket.json"))
        self._write()

    def _write(self) -> None:
        noted = {"identity": self.identity, "done": self.done, "digests": self.digests}
        new = self.folder / f"{JOURNAL}.new"
        new.write_text(json.dumps(noted), encoding="utf-8")
        os.replace(new, self.folder / JOURNAL)

    def note_digests(self, index: int, skeleton: Skeleton, units: Units) -> None:
        """Record digests of the layer's original weights for the mask's fingerprint."""
        from tombola.masks.base import digest_of, fingerprinted

        layout = masks.Layout.of(skeleton.model)
        in_layer = {matrix.tensor for matrix in layout.matrices if matrix.layer == index}
        for name in fingerprinted(layout):
            if name in in_layer:
                self.digests[name] = digest_of(skeleton.model.get_parameter(name)).hex()

    def note(self, index: int, kept: Mapping[str, Bits], hidden: list[Tensor]) -> None:
        """Record that a layer is done, with its mask and the inputs of the next layer."""
        from safetensors.torch import save_file

        save_file(
            {name: torch.from_numpy(bits) for name, bits in kept.items()},
            self.folder / f"mask-{index}.safetensors",
        )
        before, after = self._hidden(index), self._hidden(index + 1)
        if hidden:
            shutil.rmtree(after, ignore_errors=True)
            after.mkdir()
            for number, states in enumerate(hidden):
                save_file({"hidden": states.cpu().contiguous()}, after / f"{number}.safetensors")
        self.done = index + 1
        self._write()
        shutil.rmtree(before, ignore_errors=True)

    def _hidden(self, index: int) -> Path:
        return self.folder / f"hidden-{index}"

    def hidden(self, count: int, device: str) -> list[Tensor]:
        """Load the inputs of the next layer, by batch."""
        from safetensors.torch import load_file

        files = [self._hidden(self.done) / f"{number}.safetensors" for number in range(count)]
        return [load_file(file, device=device)["hidden"] for file in files]

    def mask(self, units: Units, skeleton: Skeleton) -> Mask:
        """Return the mask of all layers, with the fingerprint of the original model."""
        from safetensors.numpy import load_file

        from tombola.masks.base import fingerprinted, with_digests

        bits: dict[str, Any] = {}
        for index in range(self.done):
            bits |= load_file(self.folder / f"mask-{index}.safetensors")
        layout = masks.Layout.of(skeleton.model)
        digests = (bytes.fromhex(self.digests[name]) for name in fingerprinted(layout))
        base = with_digests(units.base, layout, digests)
        return masks.Mask(replace(units, base=base), bits)

    def finish(self, output: Path, mask: Mask, described: Mapping[str, Any]) -> None:
        """Move the pruned model to the output folder."""
        mask.save(self.model / masks.MASK)
        record = {**described, "base": mask.base.fingerprint, "removed": mask.removed, "of": mask.count}
        (self.model / PRUNED).write_text(json.dumps(record, indent=1), encoding="utf-8")
        with suppress(FileNotFoundError):
            output.rmdir()
        self.model.rename(output)
        shutil.rmtree(self.folder, ignore_errors=True)
