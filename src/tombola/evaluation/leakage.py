"""Evaluation examples that also stand in the training data, where a good score says little."""

from tombola.tasks import Split


def leaked(train: Split, test: Split) -> int:
    """How many examples of `test` stand in `train`, whatever their case and punctuation."""
    known = set(train.text_keys)
    return sum(key in known for key in test.text_keys)


def leakage_note(train: Split, test: Split) -> str | None:
    """A sentence that counts the leaked examples, if there are any; a split is not held against itself."""
    same = (train.task.name, train.name) == (test.task.name, test.name)
    count = 0 if same or len(train.task.text) != len(test.task.text) else leaked(train, test)
    if not count:
        return None
    return (
        f"{count} of {len(test)} examples of {test.task.name}/{test.name} also stand in the training data "
        f"({train.task.name}/{train.name})."
    )
