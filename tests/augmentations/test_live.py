"""Texts that change while training: repeatable, in batches, beside their originals or in their place."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.tiny import tiny
from tests.training.toy import same_weights
from tests.words import word_tokenizer
from tests.world import GOOD, PLAIN
from tombola.augmentations import Augmenter, AugmentSettings
from tombola.augmentations.live import LiveTexts
from tombola.errors import DataError, TombolaError
from tombola.objectives import inputs_of
from tombola.objectives.building import objective_of
from tombola.objectives.consistency import COPY, Consistent
from tombola.objectives.cross_entropy import CrossEntropy, CrossEntropyLoss
from tombola.objectives.distillation import LOGITS, Distill, WithTeacher
from tombola.objectives.passes import symmetric_kl
from tombola.tasks import Task, collate_of, encode
from tombola.training import TrainSettings, train

LETTERS = word_tokenizer([" ".join([*GOOD, *PLAIN, *"abcdefghijklmnopqrstuvwxyz"])])


def pairs(folder: Path, count: int = 12) -> Any:
    rows = [
        f"the {GOOD[i % 5]} story is lovely\ta moving {PLAIN[i % 5]} was great\t{'yn'[i % 2]}"
        for i in range(count)
    ]
    (folder / "train.tsv").write_text("\n".join(["one\ttwo\tlabel", *rows]) + "\n")
    task = {
        "name": "pairs",
        "version": 1,
        "text": ["one", "two"],
        "labels": ["y", "n"],
        "metrics": ["accuracy"],
        "source": {"files": {"train": "train.tsv"}},
    }
    (folder / "pairs.yaml").write_text(yaml.safe_dump(task))
    return Task.named(str(folder / "pairs.yaml")).load("train")


def live(split: Any, **augment: Any) -> LiveTexts:
    settings = AugmentSettings(**{"of": ({"kind": "typos", "share": 1},), "share": 0.5, **augment})
    data = encode(split, LETTERS, 32)
    return LiveTexts.of(data, split, LETTERS, 32, Augmenter(settings, run_seed=1))


def test_what_an_example_becomes_depends_on_the_epoch_and_on_nothing_else(tmp_path: Path) -> None:
    split = pairs(tmp_path)
    data, again, plain = live(split), live(split), encode(split, LETTERS, 32)
    data.set_epoch(3)
    rows = data.__getitems__(range(12))
    for epoch in (3, 0, 3):  # asked in another order, between others, one by one
        again.set_epoch(epoch)
        single = [again[index] for index in reversed(range(12))][::-1]
    assert rows == single
    changed = [row != plain[index] for index, row in enumerate(rows)]
    assert 2 <= sum(changed) <= 10
    again.set_epoch(4)
    assert again.__getitems__(range(12)) != rows
    for index in range(12):
        texts = data.augmenter.texts(split.texts[index], split.ids[index], 3)
        wanted = LETTERS(*texts, truncation="longest_first", max_length=32)["input_ids"]
        assert rows[index]["input_ids"] == wanted
        assert all((new != old) == changed[index] for new, old in zip(texts, split.texts[index], strict=True))


def test_with_consistency_a_copy_stands_behind_its_original(tmp_path: Path) -> None:
    split = pairs(tmp_path)
    data, plain = live(split, consistency=1.0), encode(split, LETTERS, 32)
    rows = data.__getitems__(range(12))
    originals = [row for row in rows if row[COPY] == 0]
    assert [{**row} for row in originals] == [{**plain[index], COPY: 0} for index in range(12)]
    places = [place for place, row in enumerate(rows) if row[COPY]]
    assert 2 <= len(places) <= 10
    for place in places:
        assert rows[place][COPY] == 1
        assert rows[place]["labels"] == rows[place - 1]["labels"]
        assert rows[place]["input_ids"] != rows[place - 1]["input_ids"]


def test_the_consistency_is_the_symmetric_kl_of_the_pairs() -> None:
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    batch = {"labels": torch.tensor([0, 0, 1, 2, 2]), COPY: torch.tensor([0, 1, 0, 0, 1])}
    loss = Consistent(CrossEntropy(), 2.0).of_logits(logits, batch)
    plain = CrossEntropy().of_logits(logits, batch)
    assert torch.allclose(loss, plain + 2.0 * symmetric_kl(logits[[0, 3]], logits[[1, 4]]))
    doubled = {name: torch.cat([values, values]) for name, values in batch.items()}
    assert torch.allclose(Consistent(CrossEntropy(), 2.0).of_logits(logits.repeat(2, 1), doubled), loss)
    batch[COPY] = torch.zeros(5, dtype=torch.int64)
    assert torch.equal(Consistent(CrossEntropy(), 2.0).of_logits(logits, batch), plain)


def test_the_teacher_answers_for_the_changed_texts_or_for_their_originals_in_the_batch(
    tmp_path: Path,
) -> None:
    split = pairs(tmp_path)
    teacher = tiny("bert", num_labels=2, vocab_size=len(LETTERS))
    collate = collate_of(split.task, LETTERS)
    batch = collate(live(split, share=1.0).__getitems__(range(4)))
    taught = WithTeacher(CrossEntropy(), teacher).taught(batch)
    assert torch.equal(taught[LOGITS], teacher(**inputs_of(batch)).logits)
    batch = collate(live(split, share=1.0, consistency=1.0).__getitems__(range(4)))
    taught = WithTeacher(CrossEntropy(), teacher).taught(batch)
    answers = teacher(**inputs_of(batch)).logits
    assert torch.equal(taught[LOGITS], answers[[0, 0, 2, 2, 4, 4, 6, 6]])
    objective = objective_of(CrossEntropyLoss(), None, 1.0, Distill(), consistency=1.0)
    WithTeacher(objective, teacher).loss(
        tiny("bert", num_labels=2, vocab_size=len(LETTERS)), batch
    ).backward()


class Killed(BaseException):
    """Stands for a kill."""


@pytest.mark.parametrize("consistency", [0.0, 1.0])
def test_a_resumed_training_sees_the_same_changes(tmp_path: Path, consistency: float) -> None:
    split = pairs(tmp_path, 24)

    def run(folder: str, augmented: bool = True, kill: int | None = None, minutes: float = 999.0) -> Any:
        def progress(step: int, steps: int, figures: dict[str, float]) -> None:
            if step == kill:
                raise Killed

        model = tiny("bert", num_labels=2, vocab_size=len(LETTERS))
        augment = {"of": [{"kind": "typos", "share": 1}], "consistency": consistency}
        settings = TrainSettings(
            epochs=3,
            batch_size=8,
            learning_rate=1e-2,
            checkpoint_minutes=minutes,
            augment=augment if augmented else None,
        )
        data = live(split, consistency=consistency) if augmented else encode(split, LETTERS, 32)
        collate = collate_of(split.task, LETTERS)
        train(
            model,
            data,
            settings,
            collate=collate,
            seed=1,
            precision="fp32",
            folder=tmp_path / folder,
            progress=progress,
        )
        return model

    whole = run("whole")
    with pytest.raises(Killed):
        run("killed", kill=6, minutes=0)
    assert same_weights(whole, run("killed"))
    assert not same_weights(whole, run("plain", augmented=False))


def test_texts_that_labels_point_into_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a film was great\n" * 9)
    task = {
        "name": "words",
        "version": 1,
        "kind": "masked-lm",
        "text": "text",
        "metrics": ["masked_accuracy"],
        "source": {"files": {"train": "train.txt"}},
    }
    (tmp_path / "words.yaml").write_text(yaml.safe_dump(task))
    split = Task.named(str(tmp_path / "words.yaml")).load("train")
    with pytest.raises(DataError, match="masked-lm task cannot be changed"):
        LiveTexts.of(encode(pairs(tmp_path), LETTERS, 32), split, LETTERS, 32)


def test_settings_without_texts_are_refused(tmp_path: Path) -> None:
    split = pairs(tmp_path)
    with pytest.raises(TombolaError, match="no texts to change"):
        train(
            tiny("bert", num_labels=2),
            encode(split, LETTERS, 32),
            TrainSettings(augment={"of": ["typos"]}),
            collate=collate_of(split.task, LETTERS),
            seed=1,
            precision="fp32",
            folder=tmp_path,
        )
