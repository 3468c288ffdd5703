"""Where data is looked for, what a task file may say, and which part of a split comes back."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import yaml

from tombola.errors import DataError, RecipeError, TombolaError, UnknownName
from tombola.recipe.checking import check_file
from tombola.tasks import Task, task_names
from tombola.tasks.places import BUNDLED

GLUE = ["cola", "mnli", "mrpc", "qnli", "qqp", "rte", "sst2", "stsb", "wnli"]
COMPANIONS = [
    *(f"advglue_{name}" for name in ("mnli", "mnli_mm", "qnli", "qqp", "rte", "sst2")),
    *("fever_symmetric_v1", "fever_symmetric_v2", "hans", "paws_qqp", "paws_wiki"),
]
BUNDLED_TASKS = ["reviews", "reviews_newspaper", "reviews_product", "reviews_tweets"]
DATA = os.environ.get("TOMBOLA_DATA")
MINE: dict[str, Any] = {
    "name": "mine",
    "version": 3,
    "text": "review",
    "labels": ["bad", "good"],
    "metrics": ["accuracy"],
    "source": {"files": {"train": "data/train.csv", "test": "data/test.json"}},
}


def task_file(folder: Path, **changes: Any) -> Path:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**MINE, **changes}))
    return path


def mine(folder: Path, rows: int = 200, **changes: Any) -> Task:
    (folder / "data").mkdir(exist_ok=True)
    lines = [f'"text {i}",{"good" if i % 4 else "bad"},{i * 10}' for i in range(rows)]
    (folder / "data/train.csv").write_text("\n".join(["review,label,votes", *lines]))
    (folder / "data/test.json").write_text(json.dumps([{"review": "A", "label": "bad", "votes": 1}]))
    return Task.from_file(task_file(folder, **changes))


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOMBOLA_DATA", raising=False)


def test_the_tasks_that_ship() -> None:
    others = ["ag_news", "conll2003", "fever", "imdb", "scitail", "snli", "squad", "squad_v2"]
    others += ["reviews_text", "wikitext", "wikitext103", "wikitext2"]
    assert task_names() == sorted([*GLUE, *others, *BUNDLED_TASKS, *COMPANIONS])
    for name in task_names():
        task = Task.named(name)
        assert task.name == name
        assert task.about
        assert task.citation
        assert set(task.companions.ood + task.companions.adversarial) <= set(task_names())
        assert "validation" in task.split_names()
        assert "train" in task.split_names() or name in COMPANIONS


def normalised(text: str) -> str:
    return "".join(c for c in text.lower() if c.isascii() and c.isalnum())


@pytest.mark.parametrize("task", BUNDLED_TASKS)
def test_bundled_data_is_sound(task: str) -> None:
    keys: set[str] = set()
    total = 0
    for name, least in {"train": 1900, "validation": 400, "test": 500}.items():
        split = Task.named(task).load(name)
        assert len(split) >= least
        assert 0.35 < np.mean(split.labels) < 0.72
        ratings = np.array(split.columns["rating"], dtype=float)
        assert (np.abs(ratings) >= 0.5).all()
        assert ((ratings > 0) == np.array(split.labels)).all()
        keys |= {normalised(text) for (text,) in split.texts}
        total += len(split)
    assert len(keys) == total
    assert (BUNDLED / "reviews/LICENSE").read_text().startswith("The MIT License")


def test_film_reviews_have_a_large_validation_and_test_set() -> None:
    assert [len(Task.named("reviews").load(name)) for name in ("train", "validation", "test")] == [
        3780,
        907,
        1182,
    ]


@pytest.mark.parametrize("layout", ["glue/SST-2", "SST-2", "."])
def test_the_folder_may_be_the_root_the_benchmark_or_the_task(
    tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / layout).mkdir(parents=True, exist_ok=True)
    (tmp_path / layout / "dev.tsv").write_text("sentence\tlabel\nfine\t1\n")
    assert Task.named("sst2").load("validation", folder=tmp_path).labels == [1]
    monkeypatch.setenv("TOMBOLA_DATA", str(tmp_path))
    split = Task.named("sst2").load("validation")
    assert split.labels == [1]
    assert split.source == str(tmp_path / layout / "dev.tsv")


def test_a_folder_without_the_split_is_an_error_not_a_download(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\nfine\t1\n")
    with pytest.raises(DataError, match=r"no file for sst2/train \(looked for train.tsv\)"):
        Task.named("sst2").load("train", folder=tmp_path)


def test_nothing_found_names_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise ConnectionError("Couldn't reach the hub\nand more")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(DataError) as caught:
        Task.named("sst2").load("validation", folder=tmp_path)
    message = str(caught.value)
    for place in [
        str(tmp_path / "glue/SST-2"),
        "dev.tsv",
        "nyu-mll/glue/sst2[validation]: Couldn't reach the hub)",
    ]:
        assert place in message
    with pytest.raises(DataError, match=r"neither data\.folder nor TOMBOLA_DATA is set"):
        Task.named("sst2").load("validation")
    with pytest.raises(DataError, match="does not exist"):
        Task.named("sst2").load("validation", folder=tmp_path / "nowhere")


def hub(
    monkeypatch: pytest.MonkeyPatch, names: list[str], rows: dict[str, list[Any]]
) -> list[tuple[Any, ...]]:
    """Let the hub answer with these rows; returns the list of what it was asked for."""
    asked: list[tuple[Any, ...]] = []
    data = datasets.Dataset.from_dict(rows).cast_column("label", datasets.ClassLabel(names=names))

    def load_dataset(path: str, config: str | None, split: str) -> datasets.Dataset:
        asked.append((path, config, split))
        return data

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return asked


PAIRS = {"premise": ["A", "B"], "hypothesis": ["C ", "D"], "idx": [7, 9]}


def test_the_hub_gives_rows_ids_and_its_own_split_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hub(monkeypatch, ["entailment", "neutral", "contradiction"], {**PAIRS, "label": [2, 0]})
    split = Task.named("mnli").load("validation")
    assert asked == [("nyu-mll/glue", "mnli", "validation_matched")]
    assert (split.texts, split.labels, split.ids) == ([("A", "C"), ("B", "D")], [2, 0], ["7", "9"])


def test_another_label_order_on_the_hub_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    hub(monkeypatch, ["contradiction", "neutral", "entailment"], {**PAIRS, "label": [2, 0]})
    with pytest.raises(
        DataError, match=r"\['contradiction', 'neutral', 'entailment'\].*\['entailment', 'neutral'"
    ):
        Task.named("mnli").load("validation")


def hub_task(folder: Path, labels: list[str], **source: Any) -> Task:
    """A user's task on the hub."""
    source = {"hub": "me/data", "files": {"train": "train.csv"}, **source}
    return Task.from_file(task_file(folder, labels=labels, text="text", source=source))


def test_the_hubs_label_numbers_are_places_also_of_labels_called_by_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub(monkeypatch, ["1", "2", "3"], {"text": ["A", "B", "C"], "label": [0, 1, 2]})
    assert hub_task(tmp_path, ["1", "2", "3"]).load("train").labels == [0, 1, 2]


def test_the_label_order_of_the_hub_is_checked_under_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"text": ["A", "B"], "label": [0, 1]}
    data = datasets.Dataset.from_dict(rows).cast_column("label", datasets.ClassLabel(names=["bad", "good"]))
    data = data.rename_column("label", "mood")
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: data)
    assert hub_task(tmp_path, ["bad", "good"], hub_map={"label": "mood"}).load("train").labels == [0, 1]
    with pytest.raises(DataError, match=r"\['bad', 'good'\].*\['good', 'bad'\]"):
        hub_task(tmp_path, ["good", "bad"], hub_map={"label": "mood"}).load("train")


def test_unlabelled_hub_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    hub(monkeypatch, ["entailment", "neutral", "contradiction"], {**PAIRS, "label": [-1, -1]})
    with pytest.raises(DataError, match="unlabelled"):
        Task.named("mnli").load("validation")


def test_hub_labels_may_have_other_names_that_the_task_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    hub(monkeypatch, ["neg", "pos"], {"text": ["A", "B"], "label": [1, 0]})
    assert Task.named("imdb").load("test").labels == [1, 0]


def test_a_hub_row_with_an_empty_question_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"question1": ["A"] * 200, "question2": ["B"] * 199 + [""], "label": [0] * 200}
    hub(monkeypatch, ["not_duplicate", "duplicate"], rows)
    split = Task.named("qqp").load("train")
    assert (len(split), split.dropped) == (199, 1)


def test_my_own_task_beside_its_data(tmp_path: Path) -> None:
    task = mine(tmp_path, keep=["votes"])
    split = Task.named(str(tmp_path / "mine.yaml")).load("train")
    assert split.labels[:5] == [0, 1, 1, 1, 0]
    assert split.columns == {"votes": [str(i * 10) for i in range(200)]}
    assert task.load("test").labels == [0]
    lines = check_file(str(tmp_path / "mine.yaml"), data=True).splitlines()
    assert {line.split(" rows")[0] for line in lines[1:]} == {"mine/train: 200", "mine/test: 1"}


def test_data_of_a_copied_task_file_are_found_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, copies = mine(tmp_path), tmp_path / "elsewhere"
    copies.mkdir()
    (file,) = tmp_path.glob("*.yaml")
    copied = Task.from_file(shutil.copy(file, copies))
    with pytest.raises(
        DataError, match=r"elsewhere: no file for .*Copy the data next to the task file, or set"
    ):
        copied.load("train")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty: no file for"):
        copied.load("train", folder=tmp_path / "empty")
    assert copied.load("train", folder=tmp_path).fingerprint == original.load("train").fingerprint
    monkeypatch.setenv("TOMBOLA_DATA", str(tmp_path))
    assert copied.load("train").fingerprint == original.load("train").fingerprint
    assert original.load("train", folder=copies).source == original.load("train").source  # beside it


def test_text_columns_are_attackable_unless_said(tmp_path: Path) -> None:
    assert Task.named("mnli").attackable == ["premise", "hypothesis"]
    pair = {"text": ["review", "label"], "attackable": ["review"]}
    assert Task.from_file(task_file(tmp_path, **pair)).attackable == ["review"]


WRONG = {
    "key": ({"lables": ["a", "b"]}, "unknown key 'lables'. Did you mean 'labels'"),
    "nested key": ({"source": {"file": {}}}, "unknown key 'file'. Did you mean 'files'"),
    "metric": ({"metrics": ["acuracy"]}, "metrics: unknown metric 'acuracy'. Did you mean 'accuracy'"),
    "no text": ({"text": []}, "text"),
    "three texts": ({"text": ["a", "b", "c"]}, "takes 1 or 2 columns of a classification task"),
    "regression": ({"kind": "regression"}, "labels: a regression task has none"),
    "metric of the other kind": (
        {"metrics": ["pearson"]},
        "pearson does not apply to a classification task; use accuracy",
    ),
    "f1 of three": (
        {"labels": ["a", "b", "c"], "metrics": ["f1"]},
        "f1 is for 2 labels, but the task has 3; use",
    ),
    "truth": ({"labels": ["no", True]}, "labels.1: must be a valid string, not True: put it in quotes"),
    "labels twice": ({"labels": ["good", "Good"]}, "labels: must be unique"),
    "attackable": ({"attackable": ["label"]}, "takes columns of `text` (review)"),
    "no files": ({"source": {"hub": "a/b"}}, "name the file of each split"),
    "escaping": (
        {"source": {"files": {"train": "../other/train.csv"}}},
        "'../other/train.csv' leaves its folder",
    ),
    "absolute": ({"source": {"files": {"train": "/etc/passwd"}}}, "'/etc/passwd' leaves its folder"),
    "drive": ({"source": {"files": {"train": "C:\\train.csv"}}}, "leaves its folder"),
    "unknown value": (
        {"source": {"files": {"train": "t.csv"}, "values": {1: "fine"}}},
        "'fine' is not one of",
    ),
    "holdout": (
        {"holdout": {"validation": {"of": "tain", "share": 0.1}}},
        "`of` must be a split with a file",
    ),
    "version": ({"version": "new"}, "version"),
}


@pytest.mark.parametrize(("changes", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_task_file_gets_one_sentence(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    path = task_file(tmp_path, **changes)
    with pytest.raises(RecipeError) as caught:
        Task.from_file(path)
    assert str(caught.value).startswith(str(path))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_mistakes_of_a_task_file_are_told_at_once(tmp_path: Path) -> None:
    wrong = ("three texts", "labels twice", "holdout", "unknown value")
    changes = {key: value for name in wrong for key, value in WRONG[name][0].items()}
    path = task_file(tmp_path, **changes, reported="tset", settings={"by": "chance", "prompt": 1})
    with pytest.raises(RecipeError) as caught:
        Task.from_file(path)
    assert len(caught.value.mistakes) == 7
    for reason in (*(WRONG[name][1] for name in wrong), "reported: 'tset'", "settings.by", "settings.prompt"):
        assert reason in str(caught.value)


@pytest.mark.parametrize("content", ["- a list", "name: [", "\x00", ""])
def test_not_a_task_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.yaml").write_text(content)
    with pytest.raises(RecipeError, match=r"bad\.yaml"):
        Task.named(str(tmp_path / "bad.yaml"))


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UnknownName, match="'sst2'"):
        Task.named("sst-2")
    with pytest.raises(UnknownName, match="unknown split of sst2 'test'"):
        Task.named("sst2").load("test")
    with pytest.raises(TombolaError, match="cannot read the task file"):
        Task.named("nowhere.yaml")


def test_a_holdout_is_fixed_disjoint_and_complete(tmp_path: Path) -> None:
    whole = mine(tmp_path).load("train")
    task = mine(tmp_path, holdout={"validation": {"of": "train", "share": 0.25}})
    train, validation = task.load("train"), task.load("validation")
    assert sorted(train.ids + validation.ids) == sorted(whole.ids)
    assert 30 <= len(validation) <= 70
    assert validation.name == "validation"


def test_limit_is_a_random_stable_subset_in_order(tmp_path: Path) -> None:
    task = mine(tmp_path)
    few, more = task.load("train", limit=20, seed=1), task.load("train", limit=50, seed=1)
    numbers = [int(identity) for identity in few.ids]
    assert numbers == sorted(numbers)
    assert len(numbers) == 20
    assert numbers != list(range(20))
    assert set(few.ids) < set(more.ids)
    assert few.ids == task.load("train", limit=20, seed=1).ids != task.load("train", limit=20, seed=2).ids
    assert task.load("train", limit=1000).ids == task.load("train").ids


def test_samples(tmp_path: Path) -> None:
    split = mine(tmp_path, keep=["votes"]).load("train")
    plain, balanced = split.sample(80, seed=3), split.sample(80, seed=3, balanced=True)
    assert len(set(plain.ids)) == 80
    assert np.bincount(balanced.labels).tolist() == [40, 40]
    assert np.bincount(split.sample(150, seed=3, balanced=True).labels).tolist() == [50, 100]
    assert balanced.columns["votes"] == [str(int(i) * 10) for i in balanced.ids]
    assert abs(np.bincount(split.sample(81, seed=3, balanced=True).labels) - 40.5).max() == 0.5
    with pytest.raises(DataError, match=r"Cannot sample 201 examples from mine/train, which has 200"):
        split.sample(201, seed=0)


def test_the_fingerprint_is_stable_and_sees_every_change(tmp_path: Path) -> None:
    base = mine(tmp_path).load("train", limit=50)
    assert base.fingerprint == mine(tmp_path).load("train", limit=50).fingerprint
    assert base.fingerprint == "06002eede7311cfa2f37814e8f269c5a"
    others = [
        mine(tmp_path).load("train"),
        mine(tmp_path).load("train", limit=50, seed=1),
        mine(tmp_path, version=4).load("train", limit=50),
        mine(tmp_path, labels=["good", "bad"]).load("train", limit=50),
        base.select(range(49, -1, -1)),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 6


PUBLISHED = {"sst2": 872, "cola": 1043, "rte": 277, "stsb": 1500}


needs_glue = pytest.mark.skipif(DATA is None, reason="TOMBOLA_DATA names no folder with GLUE")


@needs_glue
@pytest.mark.parametrize(("name", "rows"), PUBLISHED.items())
def test_real_data_in_its_published_layout(name: str, rows: int) -> None:
    assert len(Task.named(name).load("validation", folder=DATA)) == rows


@needs_glue
def test_no_film_sentence_stands_in_the_dev_set_of_sst2() -> None:
    dev = {normalised(text) for (text,) in Task.named("sst2").load("validation", folder=DATA).texts}
    film = [
        text for name in ("train", "validation", "test") for (text,) in Task.named("reviews").load(name).texts
    ]
    assert not dev & {normalised(text) for text in film}
