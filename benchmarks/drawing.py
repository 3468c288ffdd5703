"""How fast a mask is drawn, stored and fingerprinted at the size of BERT-base, beside plain torch.

    python benchmarks/drawing.py [--sparsity 0.7] [--threads 2] [--repeats 3]

85,524,480 scores in BERT-base's 73 matrices. The rivals rank the concatenated scores with `torch.kthvalue`
and `torch.topk`, and build boolean masks; their time includes both. Time is the best of some repeats; extra
memory is the highest peak of the process's resident memory above what it was before the call.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForSequenceClassification, BertConfig

from tombola.masks import Mask, Scores, Units, draw, fingerprint, removals

PAGE = 4096


class Measurement(NamedTuple):
    """What one call took, and what it gave."""

    seconds: float
    megabytes: float
    result: Any


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def measure(call: Callable[[], Any], repeats: int = 3) -> Measurement:
    runs = [run(call) for _ in range(repeats)]
    return Measurement(min(run.seconds for run in runs), max(run.megabytes for run in runs), runs[0].result)


def run(call: Callable[[], Any]) -> Measurement:
    before, peak, done = resident(), resident(), threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    return Measurement(seconds, max(peak, resident()) / 1e6 - before / 1e6, result)


def by_kthvalue(scores: Scores, remove: int) -> dict[str, torch.Tensor]:
    threshold = torch.kthvalue(torch.cat([score.reshape(-1) for score in scores.values()]), remove).values
    return {name: score > threshold for name, score in scores.items()}


def by_topk(scores: Scores, remove: int) -> dict[str, torch.Tensor]:
    flat = torch.cat([score.reshape(-1) for score in scores.values()])
    threshold = torch.topk(flat, remove, largest=False, sorted=False).values.max()
    return {name: score > threshold for name, score in scores.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--sparsity", type=float, default=0.7)
    arguments.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments.add_argument("--repeats", type=int, default=3)
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(BertConfig())

    hashed = measure(lambda: fingerprint(model))
    units = Units.of(model, "weight", base=hashed.result)
    scores = Scores.total(units, {name: matrix.abs() for name, matrix in units.matrices(model).items()})
    remove = removals(options.sparsity, units.count)
    drawn = measure(lambda: draw(scores, options.sparsity), options.repeats)
    mask: Mask = drawn.result
    assert mask.removed == remove
    kthvalue = measure(lambda: by_kthvalue(scores, remove), options.repeats)
    topk = measure(lambda: by_topk(scores, remove), options.repeats)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mask.safetensors"
        saved = measure(lambda: mask.save(path))
        size = path.stat().st_size
        loaded = measure(lambda: Mask.load(path))
    assert loaded.result == mask
    others = {
        "count kept": measure(lambda: mask.kept),
        "overlap": measure(lambda: mask.overlap(~mask)),
        "apply to the model": measure(lambda: mask.apply(model)),
        f"save ({size / 1e6:.2f} MB, {8 * size / units.count:.3f} bits a weight)": saved,
        "load": loaded,
        "fingerprint": hashed,
    }

    table = Table(title=f"{remove:,} of {units.count:,} weights removed, {options.threads} thread(s)")
    for heading in ("", "seconds", "× kthvalue", "extra MB", "× scores"):
        table.add_column(heading, justify="right" if heading else "left")
    score_megabytes = 4 * units.count / 1e6
    ranked = {"tombola draw": drawn, "torch.kthvalue": kthvalue, "torch.topk": topk}
    for name, (seconds, megabytes, _) in (ranked | others).items():
        ratio = f"{seconds / kthvalue.seconds:.3f}" if name in ranked else ""
        table.add_row(name, f"{seconds:.3f}", ratio, f"{megabytes:.1f}", f"{megabytes / score_megabytes:.3f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
