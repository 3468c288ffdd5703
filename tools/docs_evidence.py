"""A hook of the documentation: a line `[Measurements](../evidence/NAME.md)` is replaced by the content of that page."""

import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^\[Measurements\]\(\.\./evidence/(\w+)\.md\)$", re.MULTILINE)
RELATIVE_LINK = re.compile(r"\]\((?![#/.]|\w+:)")
FOLDER = Path(__file__).parent.parent / "docs" / "evidence"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Insert the evidence, with its headings one level down."""
    return MARK.sub(lambda found: _evidence(found[1]), markdown)


def _evidence(name: str) -> str:
    _, _, body = (FOLDER / f"{name}.md").read_text(encoding="utf-8").partition("\n")
    body = RELATIVE_LINK.sub("](../evidence/", body)
    return re.sub(r"^#", "##", body, flags=re.MULTILINE)
