"""Other tasks' examples in the training data, and labels that are told by their meaning."""

import pytest

from tombola.errors import DataError
from tombola.tasks import Split, Task
from tombola.tasks.labels import labels_within, meaning, outputs_by_label
from tombola.tasks.mixing import mix_in


def made(task: str, labels: list[int], name: str = "train") -> Split:
    of = Task.named(task)
    texts = [tuple(f"{task} {i}" for _ in of.text) for i in range(len(labels))]
    return Split(of, name, texts, labels, [str(i) for i in range(len(labels))], "here")


def test_own_rows_come_first_and_the_others_have_ids_of_their_own() -> None:
    mixed = mix_in(made("mnli", [0, 1, 2]), made("hans", [1, 0]), times=2)
    assert mixed.labels == [0, 1, 2, 1, 0, 1, 0]
    assert mixed.ids[:3] == ["0", "1", "2"]
    assert len(set(mixed.ids)) == 7
    assert mixed.ids[3].startswith("hans/train:0")
    assert mixed.texts[3] == mixed.texts[5] == ("hans 0", "hans 0")
    assert mixed.task.name == "mnli"
    assert mixed.fingerprint != mix_in(made("mnli", [0, 1, 2]), made("hans", [1, 0]), times=1).fingerprint


def test_mixing_needs_the_same_texts_and_labels() -> None:
    with pytest.raises(DataError, match="its examples have 2 texts, not 1"):
        mix_in(made("sst2", [0]), made("hans", [0]))
    with pytest.raises(DataError, match=r"labels of paws_wiki.*mnli"):
        mix_in(made("mnli", [0]), made("paws_wiki", [0]))


def test_what_does_not_entail_is_neutral_to_a_model_that_tells_more_apart() -> None:
    hans, mnli = Task.named("hans"), Task.named("mnli")
    assert labels_within(hans, mnli) == [0, (mnli.labels or []).index("neutral")]
    assert labels_within(hans, Task.named("rte")) == [0, 1]
    assert labels_within(Task.named("fever_symmetric_v2"), Task.named("fever")) == [0, 1, 2]


@pytest.mark.parametrize("name", ["non-entailment", "NOT_ENTAILMENT", "not entailment"])
def test_spellings_of_one_meaning(name: str) -> None:
    assert meaning(name) == "not entailment"


def test_outputs_by_meaning() -> None:
    hans = Task.named("hans")
    assert outputs_by_label(["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], hans) == [[2], [0, 1]]
    assert outputs_by_label(["not_entailment", "entailment"], hans) == [[1], [0]]
    assert outputs_by_label(["entailment", "neutral"], Task.named("mnli")) is None
    assert outputs_by_label(["entailment", "Entailment", "neutral"], hans) is None
