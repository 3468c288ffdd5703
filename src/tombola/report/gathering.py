"""Several runs, studies and attacks on one page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tombola.attacks.report import AttackReport
from tombola.errors import TombolaError
from tombola.results.result import RESULTS, Result


@dataclass(frozen=True)
class Sources:
    """What a page is about: results, and attacks that were run by themselves."""

    results: list[Result]
    attacks: dict[str, AttackReport]


def gather(folders: Iterable[Path | str]) -> Sources:
    """Open the folders of runs, studies and attacks."""
    results, attacks = [], {}
    for folder in map(Path, folders):
        if (folder / "examples.jsonl").is_file():
            attacks[folder.name] = AttackReport.load(folder)
        elif folder.is_file() or (folder / RESULTS).is_file():
            results.append(Result.load(folder))
        else:
            raise TombolaError(
                f"{folder} holds neither a run nor an attack: give the folder that `tombola run`, "
                f"`tombola study` or `tombola attack` wrote, with {RESULTS} or examples.jsonl in it"
            )
    return Sources(results, attacks)


def combine(results: list[Result]) -> Result | None:
    """Several results as one, told apart by an axis `run`; a single one stays as it is."""
    if len(results) < 2:
        return results[0] if results else None
    names = _names(results)
    cells = [
        {
            **cell,
            "axes": {"run": name, **cell["axes"]},
            "ticket": cell["ticket"] and str((result.folder / cell["ticket"]).resolve()),
        }
        for name, result in zip(names, results, strict=True)
        for cell in result.cells
    ]
    content: dict[str, Any] = {
        "name": " and ".join(names),
        "about": " ".join(dict.fromkeys(result.content["about"] for result in results)),
        "recipe": {name: result.content["recipe"] for name, result in zip(names, results, strict=True)},
        "versions": {
            package: number for result in results for package, number in result.content["versions"].items()
        },
        "cells": cells,
        "failures": [failure for result in results for failure in result.content.get("failures", [])],
    }
    return Result(content, results[0].folder)


def _names(results: list[Result]) -> list[str]:
    """The runs' names; their folders' names, or else whole paths, where two runs have one name."""
    choices = [
        [result.content["name"] for result in results],
        [result.folder.resolve().name for result in results],
        [str(result.folder.resolve()) for result in results],
    ]
    return next((names for names in choices if len(set(names)) == len(names)), choices[-1])
