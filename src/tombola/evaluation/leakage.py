"""Evaluation examples that also occur in the training data, where a good score means little."""

from tombola.tasks import Split


def leaked(train: Split, test: Split) -> int:
    """Return how many examples of `test` occur in `train`, ignoring case and punctuation."""
    keys = set(train.text_keys)
    return sum(key in keys for key in test.text_keys)


def leakage_note(train: Split, test: Split) -> str | None:
    """Return a sentence that counts the leaked examples, if any; a split is not compared with itself."""
    same = (train.task.name, train.name) == (test.task.name, test.name)
    count = 0 if same or len(train.task.text) != len(test.task.text) else leaked(train, test)
    if not count:
        return None
    return (
        f"{count} of {len(test)} examples of {test.task.name}/{test.name} also occur in the training data "
        f"({train.task.name}/{train.name})."
    )
