"""Report before a compression how many texts are longer than the models' input."""

from __future__ import annotations

from tombola.models.finding import find_folder
from tombola.recipe.reading import Raw
from tombola.tasks import Split, kind_of
from tombola.training.settings import TrainSettings

TEXTS = 1000
"""The most texts to look at."""
UNLIMITED = 1_000_000
"""Tokenizers without a limit of their own give a number far above this one."""


def about_truncation(raw: Raw, texts: Split) -> tuple[str, ...]:
    """Return a note if texts are truncated, for the original and the ticket alike; nothing if all fit.

    Args:
        raw: The recipe of a compression.
        texts: The training texts, of which an evenly spaced sample is taken.
    """
    from tombola.models.loading import load_tokenizer
    from tombola.models.safety import open_config
    from tombola.tasks import fitting_length, position_limit
    from tombola.tasks.text_windows import are_longer

    if not kind_of(texts.task).reads_whole_texts:
        return ()
    folder = find_folder(raw["model"])
    config, tokenizer = open_config(folder), load_tokenizer(folder)
    asked = (raw.get("train") or {}).get("max_length", TrainSettings.model_fields["max_length"].default)
    limit = min(fitting_length(asked, config), tokenizer.model_max_length)
    sample = texts.texts[:: -(-len(texts) // TEXTS)]
    share = sum(are_longer(sample, tokenizer, limit)) / len(sample)
    if not share:
        return ()
    longest = min(position_limit(config) or tokenizer.model_max_length, tokenizer.model_max_length)
    remedy = ""
    if longest > limit:
        remedy = "; to read more, raise train.max_length"
        remedy += f" (to at most {longest:,})" if longest < UNLIMITED else ""
    told = f"{share:.0%}" if share >= 0.01 else "less than 1%"
    return (f"{told} of the texts are longer than {limit} tokens and are truncated{remedy}",)
