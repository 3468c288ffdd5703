"""The model card in a ticket's folder: what it is, how good it is, how to use it, the recipe that makes it again."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml


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
    """Markdown with the front matter of the hub.

    `table` is a heading and its rows; the columns from `score` on are numbers.
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
    lines = [
        "---",
        yaml.safe_dump(front, sort_keys=False).strip(),
        "---",
        "",
        f"# {title}",
        "",
        about,
        "",
        *(f"| {' | '.join(_cell(text) for text in row)} |" for row in (heading, rule, *rows)),
        "",
        "## Use",
        "",
        "```python",
        *use,
        "```",
        "",
        *([after_use, ""] if after_use else []),
        "## Recipe",
        "",
        "```yaml",
        yaml.safe_dump(info["recipe"], sort_keys=False, allow_unicode=True).strip(),
        "```",
        "",
        drawn + ", ".join(f"{name} {number}" for name, number in info["versions"].items()) + ".",
        "",
    ]
    return "\n".join(lines)


def figures(score: Mapping[str, Any]) -> list[str]:
    """The cells of a score: value, standard error, number of examples."""
    return [f"{score['value']:.4f}", f"{score['stderr']:.4f}", str(score["n"])]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
