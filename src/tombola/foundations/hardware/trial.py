"""Time and compare a forward and backward pass in fp32 and bf16. Run as a script in a child process.

The first bf16 product may kill the process, so this script imports only torch and prints results as soon as they are
known: each line is a JSON object, and later lines add to earlier ones.
"""

import argparse
import json
import sys
import time

import torch
from torch import Tensor, nn

HEADS, LAYERS = 12, 2
# Hidden size, texts, tokens: a batch of MiniLM, since small products hide what bf16 gains.
CPU_SIZE = (384, 32, 32)
ACCELERATOR_SIZE = (768, 32, 128)  # a smaller model keeps a GPU waiting for launches, whatever the precision
BUDGET = 4.0  # seconds for all passes together; an emulated bf16 may be twenty times slower than fp32
MIN_ROUNDS, MAX_ROUNDS = 2, 6
GROWTH = 6  # from one text to the whole batch in steps, since one text takes more than its share of a batch


class Trial:
    """A small transformer encoder with a classifier, and a batch of texts for it."""

    def __init__(self, device: torch.device) -> None:
        torch.manual_seed(0)
        self.device = device
        self.hidden, self.batch, self.tokens = CPU_SIZE if device.type == "cpu" else ACCELERATOR_SIZE
        layers = [self._layer() for _ in range(LAYERS)]
        self.encoder = nn.Sequential(*layers).to(device)
        self.classifier = nn.Linear(self.hidden, 2).to(device)
        self.parameters = [*self.encoder.parameters(), *self.classifier.parameters()]
        self.use(texts=1)

    def _layer(self) -> nn.Module:
        return nn.TransformerEncoderLayer(
            self.hidden, HEADS, 4 * self.hidden, dropout=0.0, activation="gelu", batch_first=True
        )

    def use(self, texts: int) -> None:
        """Set the batch of every step to this many texts."""
        self.inputs = torch.randn(texts, self.tokens, self.hidden).to(self.device)
        self.labels = (torch.arange(texts) % 2).to(self.device)

    def step(self, bf16: bool) -> Tensor:
        """Run one forward and backward pass, and return its loss; `bf16` means autocast with 32-bit weights."""
        for parameter in self.parameters:
            parameter.grad = None
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            logits = self.classifier(self.encoder(self.inputs)[:, 0])
        loss = nn.functional.cross_entropy(logits.float(), self.labels)
        loss.backward()
        return loss.detach()

    def gradient(self) -> Tensor:
        """Return the gradient of the last step."""
        return torch.cat(
            [parameter.grad.flatten() for parameter in self.parameters if parameter.grad is not None]
        )

    def seconds(self, bf16: bool) -> float:
        """Return the duration of a step."""
        self._wait()
        start = time.perf_counter()
        self.step(bf16)
        self._wait()
        return time.perf_counter() - start

    def _wait(self) -> None:
        if self.device.type != "cpu":
            torch.accelerator.synchronize()


def run(device: torch.device) -> None:
    """Print the times of both precisions, whether all numbers are finite, and how far bf16 is from fp32."""
    trial = Trial(device)
    rounds = glance(trial)
    exact_loss, exact = trial.step(bf16=False), trial.gradient()  # these two passes are also the warm-up
    loss, gradient = trial.step(bf16=True), trial.gradient()
    fp32, bf16 = [], []
    for _ in range(rounds):  # in turns, so that a busy moment does not affect only one precision
        fp32.append(trial.seconds(bf16=False))
        bf16.append(trial.seconds(bf16=True))
    finite = all(bool(numbers.isfinite().all()) for numbers in (exact_loss, exact, loss, gradient))
    say(fp32_seconds=fp32, bf16_seconds=bf16, finite=finite)
    if finite:
        say(
            loss_difference=float((loss - exact_loss).abs() / exact_loss.abs()),
            gradient_difference=float((gradient - exact).norm() / exact.norm()),
        )


def glance(trial: Trial) -> int:
    """Choose the largest batch that the budget allows, and return the affordable number of rounds."""
    trial.step(bf16=False)
    fp32 = trial.seconds(bf16=False)
    say(fp32_seconds=[fp32])
    trial.step(bf16=True)
    each = fp32 + trial.seconds(bf16=True)
    left, texts = BUDGET - 2 * each, 1
    while (larger := min(GROWTH * texts, trial.batch)) > texts:
        if larger / texts * each * (2 + MIN_ROUNDS) > left:
            break
        trial.use(larger)
        texts = larger
        each = trial.seconds(bf16=False) + trial.seconds(bf16=True)
        left -= each
    return max(MIN_ROUNDS, min(MAX_ROUNDS, int(left / each) - 1))


def say(**known: object) -> None:
    """Print a line immediately, since the next step may be the last."""
    print(json.dumps(known), flush=True)


def main() -> int:
    """Run the trial with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is an answer and needs no core file
    torch.set_num_threads(options.threads)
    try:
        run(torch.device(options.device))
    except RuntimeError as error:
        say(error=str(error).strip().split("\n")[0])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
