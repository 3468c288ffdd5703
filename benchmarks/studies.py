"""What a study saves, and what planning, order and the store cost.

    python benchmarks/studies.py

Steps: "3 methods × 9 sparsities × 3 seeds × 2 evaluations" against a script that runs each cell by itself.
Overhead: 6 stages of 10 s on 2 workers, against 30 s of sleep; for Ray and for worker processes, once these have
started. Planning: expand and plan 10,000 cells. Finished: a study with 1,000 stages and nothing to do.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml
from measuring import Figure, run

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


def overhead(run: Callable[[list[Stage]], Outcome], each: float) -> float:
    """Time beyond the sleep, as a share of it; the first stages start the workers and are not counted."""
    run(sleeping(0.1, WORKERS))
    started = time.perf_counter()
    outcome = run(sleeping(each, STAGES))
    seconds, ideal = time.perf_counter() - started, each * STAGES / WORKERS
    assert len(outcome.ran) == STAGES, outcome.failures
    return (seconds - ideal) / ideal


def processes(folder: Path, each: float) -> float:
    store = Store(folder / "processes")
    with Pool(WORKERS, 1, store) as pool:

        def run(stages: list[Stage]) -> Outcome:
            schedule = Schedule(stages, store, Watcher())
            pool.run(schedule, retries=0, keep_going=False)
            return schedule.outcome

        return overhead(run, each)


def cluster(folder: Path, each: float) -> float:
    import ray

    from tombola.pipeline.engines import Ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        store = Store(folder / "ray")
        return overhead(lambda stages: Ray().run(stages, store, Watcher(), keep_going=False), each)
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


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared, alone = trained_share(recipe(folder, seeds=3))
        yield Figure("training steps of a study ÷ of a script per cell", shared / alone, "≤ 0.4")
        cells, seconds, working = planning(recipe(folder, seeds=10 if given.quick else 371))
        yield Figure(f"planning {cells:,} cells", working, "≤ 3", "s", wall=seconds)
        stages, seconds, working = finished(recipe(folder, seeds=2 if given.quick else 13), folder)
        yield Figure(f"nothing to do for {stages:,} stages", working, "≤ 2", "s", wall=seconds)
        each = 1.0 if given.quick else SECONDS
        for engine, measure in (("two processes", processes), ("Ray", cluster)):
            share = measure(folder, each)
            yield Figure(f"overhead with stages of {each:.0f} s, {engine}", 100 * share, "≤ 2", "%")


if __name__ == "__main__":
    run(__doc__, figures)
