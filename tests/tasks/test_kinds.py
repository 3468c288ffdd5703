"""A kind of task is one class: everything else follows from the registry. And the settings of kinds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
import yaml

from tests.tiny import tiny
from tests.words import word_tokenizer
from tombola.errors import DataError, RecipeError
from tombola.evaluation.evaluate import evaluate_split, predict_split
from tombola.evaluation.evaluators import evaluators
from tombola.foundations.registry import Registry
from tombola.models.loading import load_model
from tombola.tasks import Split, Task, collate_of, encode, task_kinds, unlabelled
from tombola.tasks.blocks import MaskTokens
from tombola.tasks.definition import Source
from tombola.tasks.kinds import KindSettings, TaskKind
from tombola.tasks.metrics import metric, metrics, metrics_for
from tombola.tasks.questions import Answers
from tombola.tasks.rows import Columns

WORDS = [f"w{i}" for i in range(50)]
TOKENIZER = word_tokenizer([" ".join(WORDS)])


def test_the_kinds_that_come_with_the_package() -> None:
    assert sorted(task_kinds) == [
        *(
            "causal-lm",
            "classification",
            "masked-lm",
            "multi-label",
            "multiple-choice",
            "question-answering",
            "regression",
            "token-classification",
        )
    ]
    for name, kind in task_kinds.items():
        assert kind.about
        assert hasattr(transformers, kind.model)
        assert kind.evaluator in evaluators
        assert metrics_for(name)
        assert issubclass(kind.settings, KindSettings)


class Ordinal(TaskKind):
    """Grades whose order matters, as a plugin may define them: read as classes, but from words of another column."""

    about = "grades"
    fewest_labels = 2
    single_label = True

    def target(self, task: Task, columns: Columns) -> Callable[[list[Any], tuple[str, ...]], int]:
        stars = columns.value("stars")
        return lambda values, _: len(stars(values)) - 1

    def unknown(self, task: Task, texts: tuple[str, ...]) -> int:
        return 0


@pytest.fixture
def ordinal() -> Any:
    task_kinds("ordinal")(Ordinal)
    metric("grade", kinds=("ordinal",))(lambda logits, labels: metrics["accuracy"](logits, labels))
    yield
    Registry.forget(__name__)


@pytest.mark.usefixtures("ordinal")
def test_a_new_kind_is_one_class(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("text\tstars\nw1 w2\t*\nw3\t***\nw4\t**\n")
    raw = {
        "name": "stars",
        "version": 1,
        "kind": "ordinal",
        "text": "text",
        "labels": ["one", "two", "three"],
        "metrics": ["grade"],
        "source": {"files": {"train": "t.tsv"}},
    }
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(raw))
    split = Task.from_file(tmp_path / "t.yaml").load("train")
    assert split.labels == [0, 2, 1]
    tiny("bert", "base", vocab_size=len(TOKENIZER)).save_pretrained(tmp_path / "model")
    model = load_model(tmp_path / "model", split.task, seed=0)
    assert model.config.id2label == {0: "one", 1: "two", 2: "three"}
    found = evaluate_split(model, TOKENIZER, split)
    assert found.scores["grade"].n == 3
    assert predict_split(model, TOKENIZER, unlabelled(split.task, ["w1"]))[0].label in raw["labels"]


def test_an_unknown_kind_gets_the_nearest(tmp_path: Path) -> None:
    raw = {
        "name": "x",
        "version": 1,
        "kind": "multilabel",
        "text": "t",
        "metrics": ["accuracy"],
        "source": {},
    }
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(raw))
    with pytest.raises(
        RecipeError, match=r"kind: unknown kind of task 'multilabel'\. Did you mean 'multi-label'"
    ):
        Task.from_file(tmp_path / "t.yaml")


def questions(words: int = 40, asked: int = 10) -> Split:
    context = " ".join(WORDS[:words])
    task = Task.named("squad")
    answers = Answers(("w5",), (context.index("w5"), context.index("w5") + 2))
    return Split(task, "train", [(" ".join(WORDS[:asked]), context)], [answers], ["q"], "")


def with_settings(split: Split, **settings: Any) -> Split:
    return Split(
        split.task.with_settings(settings), split.name, split.texts, split.labels, split.ids, split.source
    )


def test_the_stride_and_the_longest_question() -> None:
    split = questions()
    plain = encode(split, TOKENIZER, 33)  # 10 of the question, 20 of the context, 3 special tokens
    assert len(plain) == 3  # half a window where 128 is more: 0, 10, 20
    assert len(encode(with_settings(split, doc_stride=5), TOKENIZER, 33)) == 5  # 0, 5, 10, 15, 20
    short = encode(with_settings(split, max_query_length=4), TOKENIZER, 33)
    assert short.lengths[0] == 33
    question = TOKENIZER.convert_ids_to_tokens(short[0]["input_ids"])
    assert question[1:6] == [*WORDS[:4], "[SEP]"]


def passages(count: int = 30) -> Split:
    texts: list[tuple[str, ...]] = [(" ".join(WORDS),) for _ in range(count)]
    return Split(Task.named("wikitext"), "train", texts, [None] * count, [str(i) for i in range(count)], "")


def test_the_share_of_masked_tokens_and_the_size_of_blocks() -> None:
    split = passages()
    assert set(encode(split, TOKENIZER, 32).lengths[:-1]) == {32}
    assert set(encode(with_settings(split, block_size=12), TOKENIZER, 32).lengths[:-1]) == {12}
    with pytest.raises(DataError, match="block_size is 40, but inputs have at most 32 tokens"):
        encode(with_settings(split, block_size=40), TOKENIZER, 32)
    data = encode(split, TOKENIZER, 128)
    for rate in (0.15, 0.4):
        collate = collate_of(split.task.with_settings({"mlm_probability": rate}), TOKENIZER)
        assert isinstance(collate, MaskTokens)
        labels = collate([data[i] for i in range(len(data))])["labels"]
        real = int((data.labels != -100).sum())
        assert int((labels != -100).sum()) / real == pytest.approx(rate, abs=0.03)
    assert torch.equal(
        collate_of(split.task, TOKENIZER)([data[0]])["labels"],
        collate_of(split.task.with_settings({"mlm_probability": 0.15}), TOKENIZER)([data[0]])["labels"],
    )


WRONG = {
    "unknown": (
        "squad",
        {"doc_strid": 3},
        "data.task_settings: unknown key 'doc_strid'. Did you mean 'doc_stride'",
    ),
    "of another kind": ("squad", {"mlm_probability": 0.2}, "unknown key 'mlm_probability'"),
    "range": (
        "wikitext",
        {"mlm_probability": 1.5},
        "data.task_settings.mlm_probability: must be less than 1",
    ),
    "none": (
        "stsb",
        {"doc_stride": 3},
        "data.task_settings: stsb is a regression task, which has no settings",
    ),
}


@pytest.mark.parametrize(("task", "settings", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_settings(task: str, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Task.named(task).with_settings(settings)
    assert reason in str(caught.value)


def test_settings_of_a_task_file_are_part_of_the_fingerprint_unless_they_only_score() -> None:
    plain = questions()
    assert with_settings(plain, doc_stride=128).fingerprint == plain.fingerprint
    assert with_settings(plain, doc_stride=64).fingerprint != plain.fingerprint
    task = Task(
        name="feelings",
        version=1,
        kind="multi-label",
        text=["text"],
        labels=["a", "b"],
        metrics=["micro_f1"],
        source=Source(files={"train": ["t.tsv"]}),
    )
    split = Split(task, "train", [("w1",)], [[0, 1]], ["0"], "")
    assert with_settings(split, threshold=0.3).fingerprint == split.fingerprint
    other = Split(task.model_copy(update={"metrics": ["macro_f1"]}), "train", [("w1",)], [[0, 1]], ["0"], "")
    assert other.fingerprint == split.fingerprint


@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
def test_any_text_is_a_masked_lm_task(tmp_path: Path, folder: bool) -> None:
    if folder:
        (tmp_path / "corpus/deep").mkdir(parents=True)
        (tmp_path / "corpus/b.txt").write_text("w3 w4\n")
        (tmp_path / "corpus/a.txt").write_text("w1\n\nw2\n\n")
        (tmp_path / "corpus/deep/c.txt").write_text("w5")
        (tmp_path / "corpus/readme.md").write_text("not this")
        expected = ["w1", "w2", "w3 w4", "w5"]
    else:
        (tmp_path / "corpus.txt").write_text("w1\n\n w2\tw3 \n")
        expected = ["w1", "w2\tw3"]
    raw = {
        "name": "corpus",
        "version": 1,
        "kind": "masked-lm",
        "text": "text",
        "metrics": ["masked_accuracy"],
        "settings": {"mlm_probability": 0.2},
        "source": {"files": {"train": "corpus" if folder else "corpus.txt"}},
        "holdout": {"validation": {"of": "train", "share": 0.3}},
    }
    (tmp_path / "my_corpus.yaml").write_text(yaml.safe_dump(raw))
    task = Task.named(str(tmp_path / "my_corpus.yaml"))
    splits = [task.load(name) for name in ("train", "validation") if _has(task, name)]
    assert sorted(text for split in splits for (text,) in split.texts) == expected
    data = encode(splits[0], TOKENIZER, 16)
    assert isinstance(data.labels, np.ndarray)
    (tmp_path / "corpus/b.txt" if folder else tmp_path / "corpus.txt").write_bytes(b"fine\ncaf\xe9\n")
    with pytest.raises(DataError, match=r"(b|corpus)\.txt:2: not UTF-8"):
        task.load("train")


def _has(task: Task, name: str) -> bool:
    """Whether any passage falls into a split: of so few, none may."""
    try:
        return len(task.load(name)) > 0
    except DataError:
        return False


def test_the_values_of_groups_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        "{name: grouped, version: 1, text: text, labels: ['0', '1'], metrics: [accuracy], groups: [from],"
        " source: {files: {test: test.csv}}}"
    )
    found = []
    for place in ("paper", "radio"):
        (tmp_path / "test.csv").write_text(f"text,label,from\na film,0,{place}\na plot,1,paper\n")
        found.append(Task.named(str(tmp_path / "task.yaml")).load("test").fingerprint)
    assert found[0] != found[1]
