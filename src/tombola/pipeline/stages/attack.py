"""Attack a trained model on a sample of a data set. A killed attack resumes after its last finished example."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tombola.attacks.base import Attack as AttackSettings
from tombola.attacks.changed_words import LimitedAccuracy
from tombola.foundations.hardware import Precision
from tombola.pipeline.references import DataSource, FileSource, ModelSource
from tombola.pipeline.stages.base import MaskStage, ModelStage, StageResult
from tombola.store.stage import Stage, Workspace


class Attacked(StageResult):
    """The figures of an attack; queries are averaged over attacked examples, changes over successes.

    `by_changed_words` is the accuracy if the attack may change only a limited number of words per text.
    """

    attack: str
    n: int
    clean_accuracy: float
    accuracy_under_attack: float
    accuracy_under_attack_interval: tuple[float, float]
    success_rate: float | None
    mean_queries: float | None
    mean_changed_words: float | None
    mean_changed_share: float | None
    mean_similarity: float | None
    by_changed_words: list[LimitedAccuracy] = []
    seconds: float
    rows: int
    similarity_rows: int
    rows_per_second: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackStage(Stage[Attacked]):
    """One attack on one model, or on the model of one of its epochs."""

    kind: ClassVar = "attack"
    version: ClassVar = 4

    model: ModelStage[Any]
    data: DataSource
    trained: DataSource
    attack: AttackSettings
    n: int
    seed: int
    max_length: int
    precision: Precision
    mask: MaskStage | None = None
    query_budget: int | None = None
    vectors: FileSource | None = None
    mlm: ModelSource | None = None
    encoder: ModelSource | None = None
    """The sentence encoder, which measures how similar texts are."""
    neighbours: int | None = None
    """The version of the bundled table of word neighbours, if the attack uses it."""
    proposals: int | None = None
    """The version of the masked LM's proposals, if the attack uses them."""
    lexicon: FileSource | None = None
    language: str = "en"
    epoch: int | None = None

    @property
    def label(self) -> str:
        """The attack and the model, and the epoch if that of an epoch is attacked."""
        name = self.attack.label
        noun = self.model.noun if self.mask is None else "the ticket"
        of = "" if self.epoch is None else f"epoch {self.epoch} of "
        return f"attack {of}{noun} with {name}"

    def further_settings(self) -> dict[str, Any]:
        """Return the columns that may be changed, which are not part of the data's fingerprint."""
        only = self.data.attackable
        return {"attackable": only} if only else {}

    def texts_read(self) -> float:
        """Return about how many texts the attack asks of the model and of the sentence encoder."""
        texts = self.data.load().texts
        words = sum(len(column.split()) for columns in texts for column in columns)
        return min(self.n, len(texts)) * (1 + self.attack.texts_per_word * words / max(1, len(texts)))

    def run(self, space: Workspace) -> None:
        """Attack the model, and save the report with every example."""
        from tombola.attacks import Resources
        from tombola.attacks.run import attack
        from tombola.models.loading import load_tokenizer

        model = self.model.load(space, self.trained.definition, self.epoch)
        if self.mask is not None:
            self.mask.load(space).apply(model)
        report = attack(
            model,
            load_tokenizer(space.open(self.model)),
            self.data.load(),
            self.attack,
            n=self.n,
            seed=self.seed,
            query_budget=self.query_budget,
            resources=Resources(
                vectors=self.vectors.unchanged() if self.vectors else None,
                mlm=self.mlm.folder if self.mlm else None,
                words=self.lexicon.unchanged() if self.lexicon else None,
                language=self.language,
                **({"encoder": self.encoder.name} if self.encoder else {}),
            ),
            max_length=self.max_length,
            precision=self.precision,
            resume=space.scratch / "journal.jsonl",
            progress=space.progress,
        )
        report.save(space.folder)

    def read(self, folder: Path) -> Attacked:
        """Compute the figures of the attack from its examples."""
        from tombola.attacks.report import AttackReport

        return Attacked.model_validate(AttackReport.load(folder).summary())
