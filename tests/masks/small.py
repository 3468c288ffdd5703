"""Units of three small matrices, none of whose sizes is a multiple of eight, and strategies over them."""

from functools import cache

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from tombola.masks import Base, Layout, Mask, Matrix, Scores, Units
from tombola.masks.pattern_names import NofM, Pattern

SHAPES = {"first": (3, 5), "second": (2, 9), "pooler": (1, 9)}
COUNT = 15 + 18 + 9


@cache
def small_units() -> Units:
    matrices = tuple(
        Matrix(
            name=name,
            layer=None if name == "pooler" else place,
            kind="pooler" if name == "pooler" else "query",
            tensor=f"{name}.weight",
            shape=shape,
        )
        for place, (name, shape) in enumerate(SHAPES.items())
    )
    layout = Layout(family="bert", matrices=matrices, head_dim=1, parameters=100)
    return Units.from_layout(layout, "weight", Base(model_type="bert", geometry={"layers": 2}))


def split(flat: np.ndarray) -> dict[str, torch.Tensor]:
    ends = np.cumsum([rows * columns for rows, columns in SHAPES.values()])[:-1]
    pieces = zip(SHAPES.items(), np.split(flat, ends), strict=True)
    return {name: torch.from_numpy(piece.copy()).reshape(shape) for (name, shape), piece in pieces}


def flat(mask: Mask) -> np.ndarray:
    return np.concatenate([kept.reshape(-1).numpy() for kept in mask.values()])


def mask_of(kept: np.ndarray) -> Mask:
    return Mask.from_bools(small_units(), split(kept))


def scores_of(values: np.ndarray) -> Scores:
    return Scores(small_units(), split(values))


booleans = nps.arrays(np.bool_, COUNT)
masks = booleans.map(mask_of)
tied = st.sampled_from([-np.inf, -2.0, -1e-42, -0.0, 0.0, 1e-42, 1.0, 1.0000001, 1.01, np.inf])
numbers = st.floats(allow_nan=False, width=32)
values = st.one_of(
    nps.arrays(np.float32, COUNT, elements=tied),
    nps.arrays(np.float32, COUNT, elements=numbers),
    nps.arrays(np.float32, COUNT, elements=st.floats(0, 2, width=32)),
)


def follows(kept: torch.Tensor, pattern: Pattern) -> bool:
    """Return whether a boolean outputs × inputs matrix follows a pattern: exactly N per group, or whole blocks."""
    if isinstance(pattern, NofM):
        return bool((kept.reshape(-1, pattern.of).sum(dim=1) == pattern.keep).all())
    totals = pattern.totals(kept.to(torch.int32))
    return bool(((totals == 0) | (totals == pattern.outputs * pattern.inputs)).all())
