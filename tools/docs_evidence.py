"""A hook of the documentation: `{evidence NAME}` on a page becomes what was measured, as docs/evidence/NAME.md says."""

import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^\{evidence (\w+)\}$", re.MULTILINE)
RELATIVE_LINK = re.compile(r"\]\((?![#/.]|\w+:)")
FOLDER = Path(__file__).parent.parent / "docs" / "evidence"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the evidence where a page of `systems` asks for it, its headings one level down."""
    return MARK.sub(lambda found: _evidence(found[1]), markdown)


def _evidence(name: str) -> str:
    path = FOLDER / f"{name}.md"
    if not path.is_file():
        return "Nothing is measured yet; the recipes run as they are."
    _, _, body = path.read_text(encoding="utf-8").partition("\n")
    body = RELATIVE_LINK.sub("](../evidence/", body)
    return re.sub(r"^#", "##", body, flags=re.MULTILINE)
