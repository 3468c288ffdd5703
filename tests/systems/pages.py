"""The tables of commands on the pages of the published systems."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "systems"
SYSTEMS = ("bert_tickets", "super_tickets", "robust_tickets", "srnets", "rose")
FEATURES, COMING = "What it does", "Coming from the published code"


@dataclass(frozen=True)
class Row:
    """A row of a table: what it promises, and the commands that show it."""

    page: str
    what: str
    commands: tuple[tuple[str, ...], ...]

    @property
    def identity(self) -> str:
        """A name for reports of tests."""
        return f"{self.page}: {self.what}"


def rows(page: str, section: str) -> list[Row]:
    """The rows of a section's table."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    part = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    found = []
    for line in part.splitlines():
        if line.startswith("| ") and not line.startswith(("| feature |", "| published code |", "| --- ")):
            what, shown = line.strip("|").strip().rsplit(" | ", 1)
            commands = [shlex.split(one) for one in re.findall(r"`(tombola [^`]*)`", shown)]
            found.append(Row(page, what.strip(), tuple(tuple(one[1:]) for one in commands)))
    return found
