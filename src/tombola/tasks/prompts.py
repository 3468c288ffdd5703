"""Prompts: templates that name columns in braces, filled with the texts of an example."""

import re
from collections.abc import Mapping, Sequence

_NAME = re.compile(r"\{(\w+)\}")


def check_prompt(prompt: str, columns: Sequence[str]) -> None:
    """Reject a template that names no column, or one that is not among the task's texts.

    Args:
        prompt: The template.
        columns: The task's text columns.

    Raises:
        ValueError: If the template is invalid; the message lists the allowed names.
    """
    names = _NAME.findall(prompt)
    known = ", ".join(f"{{{column}}}" for column in columns)
    if not names:
        raise ValueError(f"settings.prompt: contains no text; insert {known}")
    for name in names:
        if name not in columns:
            raise ValueError(f"settings.prompt: {{{name}}} is not a column of `text`; use {known}")


def fill(prompt: str, texts: Mapping[str, str]) -> str:
    """Fill the template with texts; braces inside texts are unchanged."""
    return _NAME.sub(lambda match: texts[match[1]], prompt)
