"""What a study saves, and what it costs to keep order.

    python benchmarks/studies.py

Steps: "3 methods × 9 sparsities × 3 seeds × 2 evaluations" against a script that runs each cell by itself.
Overhead: 6 stages of 10 s on 2 workers, against 30 s of sleep; for Ray and for worker processes, once these have
started. Planning: expand and plan 10,000 cells. Finished: a study with 1,000 stages and nothing to do.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table
from tombola.pipeline.studying import Study, plan_study, study

from tombola.foundations.caching import run_cache
from tombola.pipeline.costs import steps
from tombola.pipeline.engines import Local, Outcome, Watcher
from tombola.pipeline.engines.pool import Pool
from tombola.pipeline.engines.schedule import Schedule
from tombola.pipeline.stages import Job, Kind, kinds, stage
from tombola.store.store import Stage, Store

METHODS = {
    "imp": {"search": {"method": "iterative", "step": 0.1}},
    "omp": {"search": {"method": "magnitude", "start": "finetuned"}},
    "random": {"search": {"method": "random"}},
}
SPARSITIES = [round(0.1 * tenths, 1) for tenths in range(1, 10)]
SECONDS, STAGES, WORKERS = 10.0, 6, 2

if __name__ != "__main__" and "sleep" not in kinds:

    @stage("sleep", version=1)
    def sleep(job: Job) -> None:
        time.sleep(job.settings["seconds"])


def recipe(folder: Path, seeds: int) -> dict:
    """A recipe over 256 sentences, of which nothing is ever trained here."""
    rows = [f"a sentence of number {index}\t{('bad', 'good')[index % 2]}" for index in range(256)]
    for split in ("train", "validation", "other"):
        (folder / f"{split}.tsv").write_text("\n".join(["sentence\tlabel", *rows]) + "\n")
    files = {split: f"{split}.tsv" for split in ("train", "validation", "other")}
    task = {
        "name": "lines",
        "version": 1,
        "text": "sentence",
        "labels": ["bad", "good"],
        "metrics": ["accuracy"],
    }
    (folder / "task.yaml").write_text(yaml.safe_dump({**task, "source": {"files": files}}))
    return {
        "name": "bench",
        "model": "minilm",
        "task": str(folder / "task.yaml"),
        "seed": list(range(1, seeds + 1)),
        "draw": {"sparsity": SPARSITIES},
        "evaluate": {"on": ["validation", "other"]},
        "variants": METHODS,
    }


def trained_share(raw: dict) -> tuple[int, int]:
    with run_cache():
        planned = plan_study(raw)
        shared = sum(steps(stage) for stage in planned.stages)
        alone = sum(steps(stage) for one in planned.plans for stage in one.stages())
    return shared, alone


def planning(raw: dict) -> tuple[int, float, float]:
    started, working = time.perf_counter(), time.process_time()
    planned = plan_study(raw)
    return len(planned.plans), time.perf_counter() - started, time.process_time() - working


def sleeping(seconds: float, count: int) -> list[Stage]:
    return [Stage("sleep", 1, {"seconds": seconds, "number": number}) for number in range(count)]


def overhead(run: Callable[[list[Stage]], Outcome]) -> float:
    """Time beyond the sleep, as a share of it; the first stages start the workers and are not counted."""
    run(sleeping(0.1, WORKERS))
    started = time.perf_counter()
    outcome = run(sleeping(SECONDS, STAGES))
    seconds, ideal = time.perf_counter() - started, SECONDS * STAGES / WORKERS
    assert len(outcome.ran) == STAGES, outcome.failures
    return (seconds - ideal) / ideal


def processes(folder: Path) -> float:
    store = Store(folder / "processes")
    with Pool(WORKERS, 1, store) as pool:

        def run(stages: list[Stage]) -> Outcome:
            schedule = Schedule(stages, store, Watcher())
            pool.run(schedule, retries=0)
            return schedule.outcome

        return overhead(run)


def cluster(folder: Path) -> float:
    import ray

    from tombola.pipeline.engines import Ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        return overhead(lambda stages: Ray().run(stages, Store(folder / "ray"), Watcher()))
    finally:
        ray.shutdown()


def quick(job: Job) -> None:
    """Stands in for any stage: writes at once what results are read from."""
    drawn = {
        "weight_sparsity": 0.5,
        "parameters": 100,
        "total_sparsity": 0.4,
        "granularity": "weight",
        "base": "",
    }
    accuracy = {
        "value": float(np.random.default_rng(0).random()),
        "stderr": 0.01,
        "n": 100,
        "method": "binomial",
    }
    job.write_json("draw.json", drawn)
    job.write_json("scores.json", {"scores": {"accuracy": accuracy}})


def finished(raw: dict, folder: Path) -> tuple[int, float, float]:
    for name in ("train", "draw", "evaluate"):
        kinds._entries[name] = Kind(name, kinds[name].version, quick)

    def run() -> Study:
        return study(raw, engine=Local(), store=folder / "store", output=folder / "out")

    run()
    started, working = time.perf_counter(), time.process_time()
    found = run()
    return found.content["stages"]["all"], time.perf_counter() - started, time.process_time() - working


def main() -> None:
    table = Table("what", "figure", "goal")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared, alone = trained_share(recipe(folder, seeds=3))
        table.add_row("training steps ÷ a script per cell", f"{shared / alone:.0%}", "≤ 40 %")
        cells, seconds, working = planning(recipe(folder, seeds=371))
        table.add_row(f"planning {cells:,} cells", f"{seconds:.1f} s ({working:.1f} s of CPU)", "≤ 5 s")
        stages, seconds, working = finished(recipe(folder, seeds=13), folder)
        table.add_row(
            f"nothing to do for {stages:,} stages", f"{seconds:.1f} s ({working:.1f} s of CPU)", "≤ 2 s"
        )
        table.add_row("overhead with stages of 10 s, processes", f"{processes(folder):.1%}", "≤ 2 %")
        table.add_row("overhead with stages of 10 s, Ray", f"{cluster(folder):.1%}", "≤ 2 %")
    Console().print(table)


if __name__ == "__main__":
    from studies import main  # so that workers find the sleeping stage in a module of that name

    main()
