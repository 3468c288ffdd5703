"""The report of an attack: every example, summary figures, and both as files."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from tombola.attacks.changed_words import LimitedAccuracy, accuracy_by_words
from tombola.attacks.text import Text
from tombola.errors import DamagedArtefact, DataError
from tombola.evaluation.intervals import wilson
from tombola.foundations.checksums import check_checksums, write_checksums, write_whole
from tombola.foundations.yaml12 import dump_yaml

ResultType = Literal["Successful", "Failed", "Skipped"]

SPLIT_MARK = "<SPLIT>"  # between the columns of a pair in a CSV cell, as TextAttack writes it


@dataclass(frozen=True)
class Example:
    """One attacked example, with the field names of TextAttack's logs. A score is 1 − probability of the true label.

    Skipped: the model was wrong before the attack. Failed: the label held, or the query budget ran out.
    """

    index: int
    original: tuple[str, ...]
    changes: dict[int, str]
    ground_truth_output: int
    original_output: int
    perturbed_output: int
    original_score: float
    perturbed_score: float
    num_queries: int
    result_type: ResultType
    similarity: float | None = None
    rows: int = 0
    """Texts that the model scored for the example."""
    similarity_rows: int = 0
    """Texts that the sentence encoder embedded for the example."""

    @cached_property
    def original_text(self) -> Text:
        """The text before the attack."""
        return Text(self.original)

    @cached_property
    def perturbed_text(self) -> Text:
        """The text after the attack."""
        return self.original_text.with_changes(self.changes)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Example":
        """Parse the example from a JSON-lines record."""
        fields = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        changes = {int(position): word for position, word in record["changes"].items()}
        return cls(**fields | {"original": tuple(record["original"]), "changes": changes})

    def to_json(self) -> dict[str, Any]:
        """Return the example as a JSON-lines record, with the full perturbed text for other programs."""
        return {**asdict(self), "perturbed": list(self.perturbed_text.columns)}


@dataclass(frozen=True)
class AttackReport:
    """The outcome of one attack on one model: its examples in order, and the settings."""

    attack: str
    settings: dict[str, Any]
    examples: list[Example]
    columns: list[str]
    labels: list[str]
    seed: int
    query_budget: int | None
    resources: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    rows: int = 0
    similarity_rows: int = 0
    resumed: int = 0  # examples that were finished before this run

    def __repr__(self) -> str:
        n, attacked = len(self.examples), len(self.of("Successful", "Failed"))
        failed = f"{attacked} correct before the attack, {len(self.of('Failed'))} after"
        return f"AttackReport({self.attack}: {n} examples, {failed})"

    def of(self, *kinds: ResultType) -> list[Example]:
        """Return the examples with one of these results.

        Args:
            *kinds: Successful, Failed or Skipped.
        """
        return [example for example in self.examples if example.result_type in kinds]

    def by_changed_words(self) -> list[LimitedAccuracy]:
        """Return the accuracy by the number of words that the attack may change, from 0 to unlimited.

        The attack is greedy, so this is an upper bound on the accuracy under such a limit.
        """
        broken = [len(example.changes) for example in self.of("Successful")]
        return accuracy_by_words(len(self.examples), len(self.of("Successful", "Failed")), broken)

    def summary(self) -> dict[str, Any]:
        """Return the figures of the attack; queries are averaged over attacked examples, changes over successes."""
        successes, attacked = self.of("Successful"), self.of("Successful", "Failed")
        n, failed = len(self.examples), len(self.of("Failed"))
        low, high = wilson(failed, n)
        return {
            "attack": self.attack,
            "n": n,
            "clean_accuracy": len(attacked) / n,
            "accuracy_under_attack": failed / n,
            "accuracy_under_attack_interval": [low, high],
            "success_rate": len(successes) / len(attacked) if attacked else None,
            "mean_queries": _mean(attacked, lambda e: e.num_queries),
            "mean_changed_words": _mean(successes, lambda e: len(e.changes)),
            "mean_changed_share": _mean(successes, lambda e: e.perturbed_text.changed_share),
            "mean_similarity": _mean(
                [e for e in successes if e.similarity is not None], lambda e: e.similarity
            ),
            "by_changed_words": [asdict(point) for point in self.by_changed_words()],
            "seconds": self.seconds,
            "rows": self.rows,
            "similarity_rows": self.similarity_rows,
            "rows_per_second": self.rows / self.seconds if self.seconds else None,
        }

    def save(self, folder: str | Path) -> Path:
        """Write report.json, examples.jsonl, examples.csv and diff.html, and return the folder.

        Args:
            folder: The folder to write.
        """
        from tombola.attacks.page import diff_page

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        about = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "examples"}
        content = {"summary": self.summary(), **about}
        write_whole(folder / "report.json", json.dumps(content, indent=2) + "\n")
        _write_lines(folder / "examples.jsonl", [example.to_json() for example in self.examples])
        _write_csv(folder / "examples.csv", self.examples)
        page = diff_page(self)
        write_whole(folder / "diff.html", page, errors="replace")
        write_checksums(folder, only=("report.json", "examples.jsonl", "examples.csv", "diff.html"))
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> "AttackReport":
        """Load a report that `save` wrote.

        Args:
            folder: The folder.
        """
        folder = Path(folder)
        again = "attack the model again"
        check_checksums(folder, again)
        try:
            about = json.loads((folder / "report.json").read_bytes())
            del about["summary"]
            text = (folder / "examples.jsonl").read_bytes().decode("utf-8", "surrogatepass")
            records = [json.loads(line) for line in text.split("\n") if line]
            return cls(examples=[Example.from_json(record) for record in records], **about)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DamagedArtefact(
                f"{folder} does not contain an attack report of this version: {again}"
            ) from None

    def to_task(self, folder: str | Path, name: str, split: str = "validation") -> Path:
        """Write the successes as a task called `name`, for training or evaluation, and return its YAML file."""
        successes = self.of("Successful")
        if not successes:
            raise DataError(f"{self.attack} changed no label, so there are no adversarial examples to write.")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                **dict(zip(self.columns, example.perturbed_text.columns, strict=True)),
                "label": self.labels[example.ground_truth_output],
                "id": f"{self.attack}-{example.index}",
            }
            for example in successes
        ]
        _write_lines(folder / f"{name}.jsonl", rows)
        task = {
            "name": name,
            "version": 1,
            "text": self.columns,
            "labels": self.labels,
            "metrics": ["accuracy"],
            "source": {"files": {split: f"{name}.jsonl"}},
            "citation": f"adversarial examples found by {self.attack}",
        }
        path = folder / f"{name}.yaml"
        write_whole(path, dump_yaml(task))
        return path


def _mean(examples: Sequence[Example], value: Callable[[Example], Any]) -> float | None:
    return fmean(value(example) for example in examples) if examples else None


def _write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_whole(path, lines, errors="surrogatepass")


def _write_csv(path: Path, examples: list[Example]) -> None:
    """Write the columns of TextAttack's log, with changed words in [[ ]], and three more."""
    rows, stream = [_csv_row(example) for example in examples], io.StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, stream.getvalue(), errors="replace", newline="")


def _csv_row(example: Example) -> dict[str, Any]:
    changed = example.perturbed_text.changed_share
    return {
        "original_text": _marked(example.original_text, example.changes),
        "perturbed_text": _marked(example.perturbed_text, example.changes),
        "original_score": example.original_score,
        "perturbed_score": example.perturbed_score,
        "original_output": example.original_output,
        "perturbed_output": example.perturbed_output,
        "ground_truth_output": example.ground_truth_output,
        "num_queries": example.num_queries,
        "result_type": example.result_type,
        "changed_words": len(example.changes),
        "changed_share": changed,
        "similarity": example.similarity,
    }


def _marked(text: Text, changes: dict[int, str]) -> str:
    columns = (
        "".join(f"[[{piece}]]" if is_changed else piece for piece, is_changed in text.pieces(c, changes))
        for c in range(len(text.columns))
    )
    return SPLIT_MARK.join(columns)
