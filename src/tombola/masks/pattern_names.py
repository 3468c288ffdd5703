"""Names of hardware-friendly sparsity patterns: keep N of every M weights, or whole blocks.

`2:4` keeps 2 of every 4 consecutive weights along the inputs of a matrix, as NVIDIA's sparse tensor cores and
`torch.sparse.to_sparse_semi_structured` require. `16x16` removes whole blocks of 16 outputs by 16 inputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from tombola.errors import TombolaError

if TYPE_CHECKING:
    from torch import Tensor

_N_OF_M = re.compile(r"\s*(\d{1,4})\s*:\s*(\d{1,4})\s*")
_BLOCKS = re.compile(r"\s*(\d{1,4})\s*[x×]\s*(\d{1,4})\s*")


@dataclass(frozen=True)
class NofM:
    """`keep` of every `of` consecutive weights along the inputs stay."""

    keep: int
    of: int

    def __str__(self) -> str:
        return f"{self.keep}:{self.of}"

    @property
    def sparsity(self) -> float:
        """The fraction of weights removed."""
        return 1 - self.keep / self.of

    def check(self, name: str, outputs: int, inputs: int) -> None:
        """Reject a matrix whose inputs are not a multiple of the group size."""
        if inputs % self.of:
            raise TombolaError(
                f"pattern {self}: {name} has {inputs} inputs, not a multiple of {self.of}: use a pattern whose "
                "second number divides them, or exclude such matrices (search.pooler, search.classifier, "
                "search.layers)"
            )


@dataclass(frozen=True)
class Blocks:
    """Blocks of `outputs` × `inputs` weights, each kept or removed as a whole."""

    outputs: int
    inputs: int

    def __str__(self) -> str:
        return f"{self.outputs}x{self.inputs}"

    @property
    def sparsity(self) -> None:
        """None: any fraction of the blocks may be removed."""
        return None

    def check(self, name: str, outputs: int, inputs: int) -> None:
        """Reject a matrix that the blocks do not tile."""
        if outputs % self.outputs or inputs % self.inputs:
            raise TombolaError(
                f"pattern {self}: {name} has {outputs} outputs and {inputs} inputs, which are not multiples of the "
                "block's sides: use blocks whose sides divide them, or exclude such matrices (search.pooler, "
                "search.classifier, search.layers)"
            )

    def totals(self, scores: Tensor) -> Tensor:
        """Return the sum of the scores (outputs × inputs) in each block."""
        rows, columns = scores.shape[0] // self.outputs, scores.shape[1] // self.inputs
        return scores.reshape(rows, self.outputs, columns, self.inputs).sum(dim=(1, 3))

    def spread(self, kept: Tensor) -> Tensor:
        """Expand one value per block to one per weight."""
        return kept.repeat_interleave(self.outputs, dim=0).repeat_interleave(self.inputs, dim=1)


Pattern = NofM | Blocks


def parse_pattern(text: str) -> Pattern:
    """Parse a pattern such as `2:4` or `16x16`.

    Args:
        text: The weights to keep and the group size, or the outputs and inputs of a block.

    Raises:
        ValueError: If the text is not a pattern.
    """
    if match := _N_OF_M.fullmatch(text):
        keep, of = int(match[1]), int(match[2])
        if 0 < keep < of:
            return NofM(keep, of)
        raise ValueError(f"{text!r} must keep at least one weight, but not all, as 2:4 does")
    if match := _BLOCKS.fullmatch(text):
        outputs, inputs = int(match[1]), int(match[2])
        if outputs and inputs and outputs * inputs > 1:
            return Blocks(outputs, inputs)
        raise ValueError(f"{text!r} must be blocks of at least two weights, such as 16x16")
    raise ValueError(
        f"{text!r} is not a pattern: write 2:4 to keep 2 of every 4 weights, or 16x16 for blocks"
    )


def _known_pattern(text: str) -> str:
    return str(parse_pattern(text))


PatternName = Annotated[str, AfterValidator(_known_pattern)]
"""A valid pattern name in a recipe."""


def implied_sparsity(text: str) -> float | None:
    """Return the fraction of weights that a pattern removes; None if the pattern does not determine it.

    Args:
        text: A pattern's name.
    """
    return parse_pattern(text).sparsity
