"""Splits held out from another one, by a hash of the text."""

from collections import defaultdict
from collections.abc import Mapping
from hashlib import blake2b

from tombola.tasks.definition import Holdout
from tombola.tasks.split import Split


def members_of(name: str, whole: Split, parts: Mapping[str, Holdout]) -> list[int]:
    """Return the examples of a part of a split or, under the split's own name, those of no part.

    If a part is stratified, the texts of every class are ordered by hash and the first go to the parts, according to
    each part's share. A text that occurs under several labels counts for the first of them. The examples of a task
    without classes are ordered all together.

    Args:
        name: The part, or the name of the split that the parts are taken from.
        whole: All examples.
        parts: The held-out parts.
    """
    points = [_point(text) for text in whole.texts]
    if any(part.stratified for part in parts.values()):
        points = _ranked(points, whole.labels if whole.task.single_label else [0] * len(whole))
    shares = {part: holdout.share for part, holdout in parts.items()}
    return [
        place
        for place, point in enumerate(points)
        if _part(point, shares) == (name if name in parts else None)
    ]


def _point(text: tuple[str, ...]) -> float:
    """Return a number from 0 to 1 that depends only on the text."""
    digest = blake2b("\n".join(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _ranked(points: list[float], labels: list[int]) -> list[float]:
    """Return each point's relative rank within its class; equal points stay equal."""
    home: dict[float, int] = {}
    for point, label in zip(points, labels, strict=True):
        home.setdefault(point, label)
    classes: defaultdict[int, set[float]] = defaultdict(set)
    for point, label in home.items():
        classes[label].add(point)
    ranks = {
        point: (rank + 0.5) / len(members)
        for members in classes.values()
        for rank, point in enumerate(sorted(members))
    }
    return [ranks[point] for point in points]


def _part(point: float, shares: Mapping[str, float]) -> str | None:
    for name, share in shares.items():
        if point < share:
            return name
        point = round(point - share, 12)  # 0.3 - 0.1 is less than 0.2
    return None
