"""One prune and rewind of iterative magnitude pruning at BERT-base's size, against the plain PyTorch way.

    python benchmarks/imp.py

Plain: `kthvalue` over the concatenated magnitudes, a boolean mask per matrix, a copy of the pre-trained weights
times the mask. Ours: draw from the trained weights within the last round's mask, copy the pre-trained weights back
and zero what is removed. Memory is the growth of the process over the round, beyond weights and pre-trained copy.
"""

import gc
import threading
import time
from collections.abc import Callable

import psutil
import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoConfig, AutoModel

from tombola.masks import Mask, Scores, Units, draw

SPARSITIES = (0.1, 0.2, 0.3)


class Peak:
    """The most memory that the process holds while the block runs, and what it holds afterwards."""

    def __enter__(self) -> "Peak":
        gc.collect()
        self.process = psutil.Process()
        self.before = self.process.memory_info().rss
        self.top = self.before
        self.running = True
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while self.running:
            self.top = max(self.top, self.process.memory_info().rss)
            time.sleep(0.002)

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.thread.join()
        gc.collect()
        self.after = self.process.memory_info().rss


def plain(
    weights: dict[str, torch.Tensor], original: dict[str, torch.Tensor], sparsity: float, state: dict
) -> None:
    masks = state.get("masks")
    scores = torch.cat([
        (w.abs() if masks is None else w.abs() * masks[name]).flatten() for name, w in weights.items()
    ])  # fmt: skip
    threshold = scores.kthvalue(int(sparsity * scores.numel())).values
    state["masks"] = {name: w.abs() > threshold for name, w in weights.items()}
    for name, weight in weights.items():
        weight.copy_(original[name] * state["masks"][name])


def ours(
    model: torch.nn.Module, units: Units, original: dict[str, torch.Tensor], sparsity: float, state: dict
) -> None:
    mask: Mask = draw(Scores.magnitude(units, model), sparsity=sparsity, within=state.get("mask"))
    for name, weight in units.matrices(model).items():
        weight.copy_(original[name])
    mask.apply(model)
    state["mask"] = mask


def rounds(
    run: Callable[[float, dict], None], train: Callable[[], None]
) -> tuple[list[float], int, list[int]]:
    state: dict = {}
    seconds, peak, kept = [], 0, []
    for sparsity in SPARSITIES:
        train()
        with Peak() as memory:
            started = time.perf_counter()
            run(sparsity, state)
            seconds.append(time.perf_counter() - started)
        peak = max(peak, memory.top - memory.before)
        kept.append(memory.after - memory.before)
    return seconds, peak, kept


@torch.no_grad()
def main() -> None:
    model = AutoModel.from_config(AutoConfig.for_model("bert"))
    units = Units.of(model, "weight")
    weights = units.matrices(model)
    original = {name: weight.clone() for name, weight in weights.items()}
    noise = torch.randn(3072, 768) * 0.01

    def train() -> None:
        for weight in weights.values():
            weight.add_(noise[: weight.shape[0], : weight.shape[1]] if weight.shape[1] <= 768 else noise.T)

    size = 4 * units.weights
    # Ours comes first: memory that the plain way has freed would hide what ours takes.
    found = {
        "ours": rounds(lambda sparsity, state: ours(model, units, original, sparsity, state), train),
        "plain": rounds(lambda sparsity, state: plain(weights, original, sparsity, state), train),
    }
    table = Table(
        "", "seconds a round", "× plain", "peak extra ÷ weights", "kept from round to round ÷ weights"
    )
    base = min(found["plain"][0])
    for name, (seconds, peak, kept) in found.items():
        best = min(seconds)
        table.add_row(
            name, f"{best:.2f}", f"{best / base:.2f}", f"{peak / size:.2f}", f"{max(kept[1:]) / size:.2f}"
        )
    Console().print(
        f"{units.weights:,} weights in {len(units.groups)} matrices, {torch.get_num_threads()} threads"
    )
    Console().print(table)


if __name__ == "__main__":
    main()
