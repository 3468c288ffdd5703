"""The model card in a ticket's folder: description, scores, usage, and the recipe to reproduce it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tombola.foundations.folders import by_name
from tombola.foundations.yaml12 import dump_yaml

_MARKUP = re.compile(r"[<>&`\[\]]")


def card(
    info: Mapping[str, Any],
    *,
    title: str,
    about: str,
    tag: str,
    table: Sequence[Sequence[str]],
    use: Sequence[str],
    after_use: str = "",
) -> str:
    """Return the model card as Markdown with the hub's front matter.

    `table` is a heading followed by rows; the columns from `score` on are numbers.
    """
    front = {
        "library_name": "transformers",
        "tags": ["tombola", "lottery-ticket", "pruning", tag],
        "base_model": info["base"]["name"],
    }
    heading, *rows = table
    numbers = heading.index("score")
    rule = ["---:" if column >= numbers else "---" for column in range(len(heading))]
    drawn = (
        f"Trained in {info['precision']}. Drawn from base model fingerprint `{info['base']['fingerprint']}`. "
    )
    code = "\n".join(use)
    recipe = dump_yaml(by_name(info["recipe"])).strip()
    lines = [
        "---",
        dump_yaml(front).strip(),
        "---",
        "",
        f"# {plain(title)}",
        "",
        plain(about),
        "",
        *(f"| {' | '.join(_cell(text) for text in row)} |" for row in (heading, rule, *rows)),
        "",
        "## Use",
        "",
        *_fenced("python", code),
        "",
        *([after_use, ""] if after_use else []),
        "## Recipe",
        "",
        *_fenced("yaml", recipe),
        "",
        drawn + ", ".join(f"{name} {number}" for name, number in info["versions"].items()) + ".",
        "",
    ]
    return "\n".join(lines)


def figures(score: Mapping[str, Any]) -> list[str]:
    """Return the table cells of a score: value, standard error, number of examples."""
    return [f"{score['value']:.4f}", f"{score['stderr']:.4f}", str(score["n"])]


def plain(text: str) -> str:
    """Escape text for Markdown: one line, no HTML, no links, no code."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", " ".join(text.split()))


def _fenced(language: str, content: str) -> list[str]:
    """Return a code block with a fence longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", content, fence]


def _cell(text: str) -> str:
    return plain(text).replace("|", "\\|")
