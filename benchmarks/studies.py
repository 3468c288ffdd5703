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

import yaml
from rich.console import Console
from rich.table import Table

from tombola.pipeline.engines import Local
from tombola.pipeline.engines.pool import Pool
from tombola.pipeline.engines.schedule import Schedule
from tombola.pipeline.plan import Plan
from tombola.pipeline.runner import run_plan
from tombola.pipeline.stages.draw import Draw
from tombola.pipeline.stages.evaluate import Evaluate
from tombola.pipeline.stages.train import Train
from tombola.pipeline.study import plan_study, read_study
from tombola.pipeline.watching import Outcome, Watcher
from tombola.store.stage import Stage
from tombola.store.store import Store

METHODS = {
    "imp": {"search": {"method": "iterative", "step": 0.1}},
    "omp": {"search": {"method": "magnitude", "start": "finetuned"}},
    "random": {"search": {"method": "random"}},
}
SPARSITIES = [round(0.1 * tenths, 1) for tenths in range(1, 10)]
SECONDS, STAGES, WORKERS = 10.0, 6, 2


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


def planned(raw: dict) -> Plan:
    return plan_study(read_study(raw))


def trained_share(raw: dict) -> tuple[int, int]:
    plan = planned(raw)
    shared = sum(stage.training_steps() for stage in plan.stages)
    alone = sum(stage.training_steps() for cell in plan.cells for stage in cell.stages())
    return shared, alone


def planning(raw: dict) -> tuple[int, float, float]:
    started, working = time.perf_counter(), time.process_time()
    plan = planned(raw)
    return len(plan.cells), time.perf_counter() - started, time.process_time() - working


def sleeping(seconds: float, count: int) -> list[Stage]:
    from sleeping import Sleep  # only now: a kind of stage from outside makes planning look for plugins

    return [Sleep(seconds=seconds, number=number) for number in range(count)]


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
            pool.run(schedule, retries=0, keep_going=False)
            return schedule.outcome

        return overhead(run)


def cluster(folder: Path) -> float:
    import ray

    from tombola.pipeline.engines import Ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        return overhead(lambda stages: Ray().run(stages, Store(folder / "ray"), Watcher(), keep_going=False))
    finally:
        ray.shutdown()


def finished(raw: dict, folder: Path) -> tuple[int, float, float]:
    """Go through a study of which every stage is there; their content is never looked at."""
    for kind in (Train, Draw, Evaluate):
        kind.run = lambda stage, space: None

    def run() -> int:
        plan = planned(raw)
        run_plan(plan, Store(folder / "store"), folder / "results.json", engine=Local())
        return len(plan.stages)

    run()
    started, working = time.perf_counter(), time.process_time()
    return run(), time.perf_counter() - started, time.process_time() - working


def main() -> None:
    table = Table("what", "figure", "goal")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared, alone = trained_share(recipe(folder, seeds=3))
        table.add_row("training steps ÷ a script per cell", f"{shared / alone:.0%}", "≤ 40 %")
        cells, seconds, working = planning(recipe(folder, seeds=371))
        table.add_row(
            f"planning {cells:,} cells", f"{seconds:.1f} s ({working:.1f} s of CPU)", "≤ 3 s of CPU"
        )
        stages, seconds, working = finished(recipe(folder, seeds=13), folder)
        table.add_row(
            f"nothing to do for {stages:,} stages", f"{seconds:.1f} s ({working:.1f} s of CPU)", "≤ 2 s"
        )
        table.add_row("overhead with stages of 10 s, processes", f"{processes(folder):.1%}", "≤ 2 %")
        table.add_row("overhead with stages of 10 s, Ray", f"{cluster(folder):.1%}", "≤ 2 %")
    Console().print(table)


if __name__ == "__main__":
    main()
