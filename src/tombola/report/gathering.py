"""Gather several runs, studies and attacks for one page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tombola.attacks.report import AttackReport
from tombola.errors import TombolaError
from tombola.foundations.folders import publishable
from tombola.results.record import CellResult, RunRecord, StageCounts
from tombola.results.result import RESULTS, Result


@dataclass(frozen=True)
class Sources:
    """The content of a page: results, and separate attacks."""

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
    """Combine several results into one with an additional axis `run`; return a single one unchanged."""
    if len(results) < 2:
        return results[0] if results else None
    names = _names(results)
    records = [result.record for result in results]
    record = RunRecord(
        name=" and ".join(names),
        about=" ".join(dict.fromkeys(one.about for one in records)),
        recipe={name: one.recipe for name, one in zip(names, records, strict=True)},
        verdict=" ".join(
            f"{name}: {one.verdict}" for name, one in zip(names, records, strict=True) if one.verdict
        ),
        date=" and ".join(dict.fromkeys(one.date for one in records if one.date)),
        machine=records[0].machine if all(one.machine == records[0].machine for one in records) else {},
        versions={package: number for one in records for package, number in one.versions.items()},
        stages=StageCounts(
            all=sum(one.stages.all for one in records), run_now=sum(one.stages.run_now for one in records)
        ),
        cells=[
            _renamed(cell, name, result.folder)
            for name, result in zip(names, results, strict=True)
            for cell in result.cells
        ],
        failures=[failure for one in records for failure in one.failures],
    )
    return Result(record, results[0].folder)


def _renamed(cell: CellResult, run: str, folder: Path) -> CellResult:
    """Return the cell with its run as an axis, and with the whole path of its ticket."""
    ticket = publishable(str((folder / cell.ticket).resolve())) if cell.ticket else None
    return cell.model_copy(update={"axes": {"run": run, **cell.axes}, "ticket": ticket})


def _names(results: list[Result]) -> list[str]:
    """Return unique names for the runs: their own, those of their folders, or whole paths."""
    choices = [
        [result.name for result in results],
        [result.folder.resolve().name for result in results],
        [publishable(str(result.folder.resolve())) for result in results],
    ]
    return next((names for names in choices if len(set(names)) == len(names)), choices[-1])
