"""Gather several runs, studies and attacks for one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tombola.attacks.report import AttackReport
from tombola.errors import TombolaError
from tombola.foundations.folders import publishable
from tombola.recipe.claims import Claim
from tombola.results.conclusion import conclude
from tombola.results.record import CellResult, RunRecord, StageCounts
from tombola.results.result import RESULTS, Result


@dataclass(frozen=True)
class Sources:
    """The content of a page: results, and separate attacks."""

    results: list[Result]
    attacks: dict[str, AttackReport]

    @property
    def runs(self) -> dict[str, Result]:
        """The results by unique names."""
        names = [result.name for result in self.results]
        if len(set(names)) < len(names):
            names = _names([result.folder for result in self.results])
        return dict(zip(names, self.results, strict=True))


def gather(folders: Iterable[Path | str]) -> Sources:
    """Open the folders of runs, studies and attacks, each once."""
    results, attacked = [], []
    for folder in {_content(path).resolve(): path for path in map(Path, folders)}.values():
        if (folder / "examples.jsonl").is_file():
            attacked.append(folder)
        elif (folder.is_file() and folder.suffix == ".json") or (folder / RESULTS).is_file():
            results.append(Result.load(folder))
        else:
            problem = "contains neither a run nor an attack" if folder.is_dir() else "is not a folder"
            raise TombolaError(
                f"{folder} {problem}: pass a folder written by `tombola run`, `tombola "
                f"study` or `tombola attack`, which contains {RESULTS} or examples.jsonl"
            )
    names = _names(attacked)
    return Sources(
        results, {name: AttackReport.load(folder) for name, folder in zip(names, attacked, strict=True)}
    )


def _content(path: Path) -> Path:
    """Return the file with the result in a folder, if there is one, else the path itself."""
    return path / RESULTS if (path / RESULTS).is_file() else path


def combine(runs: Mapping[str, Result]) -> Result | None:
    """Combine several results into one with an additional axis `run`; return a single one unchanged."""
    names, results = list(runs), list(runs.values())
    if len(results) < 2:
        return results[0] if results else None
    records = [result.record for result in results]
    record = RunRecord(
        name=" and ".join(names),
        about=" ".join(dict.fromkeys(record.about for record in records)),
        recipe={name: record.recipe for name, record in zip(names, records, strict=True)},
        verdict=" ".join(f"{name}: {text}" for name, run in runs.items() if (text := _verdict(run))),
        date=" and ".join(dict.fromkeys(record.date for record in records if record.date)),
        machine=records[0].machine if all(record.machine == records[0].machine for record in records) else {},
        versions={package: number for record in records for package, number in record.versions.items()},
        stages=StageCounts(
            all=sum(record.stages.all for record in records),
            run_now=sum(record.stages.run_now for record in records),
        ),
        cells=[
            _renamed(cell, name, result.folder)
            for name, result in zip(names, results, strict=True)
            for cell in result.cells
        ],
        failures=[failure for record in records for failure in record.failures],
        claims={
            f"{run}: {name}": claim for run, result in runs.items() for name, claim in _claims(run, result)
        },
    )
    return Result(record, results[0].folder)


def _verdict(result: Result) -> str:
    """Return the sentence of a result whose cells say nothing among those of other runs; empty for other results."""
    return conclude(result) if result.record.verdict or result.sharing() else ""


def _claims(run: str, result: Result) -> Iterator[tuple[str, Claim]]:
    """Yield the claims of a result, restricted to its run and its first data set unless they name another."""
    for name, claim in result.record.claims.items():
        on = claim.on or next(iter(result.targets), None)
        yield name, claim.model_copy(update={"at": {"run": run, **claim.at}, "on": on})


def _renamed(cell: CellResult, run: str, folder: Path) -> CellResult:
    """Return the cell with its run as an axis, and with the whole path of its ticket."""
    ticket = str((folder / cell.ticket).resolve()) if cell.ticket else None
    return cell.model_copy(update={"axes": {"run": run, **cell.axes}, "ticket": ticket})


def _names(folders: list[Path]) -> list[str]:
    """Return unique names: the last part of the folders, their last two, or whole paths, numbered if they are equal."""
    paths = [folder.resolve() for folder in folders]
    for length in (1, 2):
        names = ["/".join(folder.parts[-length:]) for folder in paths]
        if len(set(names)) == len(names):
            return names
    names = [publishable(str(folder)) for folder in paths]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({number})" for number, name in enumerate(names, start=1)]
