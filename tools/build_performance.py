"""Renews the table of docs/evidence/performance.md from the JSON files that `benchmarks/bench.py` writes.

    python tools/build_performance.py

One column a machine. A figure carries over if all machines that have it meet its goal, or all miss it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from measuring import IDLE, Figure, cells  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "performance.md"
MACHINES = PAGE.with_suffix("")
BEGIN, END = "<!-- begin of the tables -->\n", "<!-- end of the tables -->\n"

Machine = dict[str, Any]


def main() -> None:
    """Write the page."""
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), read_machines(MACHINES)), encoding="utf-8")


def read_machines(folder: Path) -> list[Machine]:
    """What was measured, machine by machine."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def renewed(page: str, machines: list[Machine]) -> str:
    """The page with the tables of these machines between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return "\n".join([before + BEGIN, *tables(machines), "", END + after])


def tables(machines: list[Machine]) -> Iterator[str]:
    """The machines, and a table for each benchmark."""
    letters = [chr(ord("A") + index) for index in range(len(machines))]
    for letter, machine in zip(letters, machines, strict=True):
        yield f"- **{letter}**: {describe(machine)}"
    for name in dict.fromkeys(name for machine in machines for name in machine["benchmarks"]):
        found = [figures(machine, name) for machine in machines]
        yield f"\n### {name}\n"
        yield f"| what | goal | {' | '.join(letters)} | carries over |"
        yield f"| --- | ---: |{' ---: |' * len(machines)} --- |"
        for what in dict.fromkeys(what for each in found for what in each):
            rows = [each.get(what) for each in found]
            known = [row for row in rows if row is not None]
            shown = " | ".join("" if row is None else shown_as(row) for row in rows)
            yield f"| {what} | {known[0].goal} | {shown} | {carries_over(known)} |"


def figures(machine: Machine, benchmark: str) -> dict[str, Figure]:
    """A machine's figures of a benchmark, by name."""
    found = machine["benchmarks"].get(benchmark, {"figures": []})
    return {row["name"]: Figure(**row) for row in found["figures"]}


def describe(machine: Machine) -> str:
    """The hardware, and on which benchmarks it was busy with other work."""
    facts = machine["machine"]
    parts = [facts["processor"], *([f"{facts['cores']} cores"] if "cores" in facts else [])]
    parts += [f"{facts['instructions']} instructions", f"{facts['threads']} thread(s)"]
    parts += [f"torch {facts['torch']}"] if "torch" in facts else []
    parts += [facts["about"]] if "about" in facts else []
    busy = [name for name, one in machine["benchmarks"].items() if one.get("others", 0) >= IDLE]
    if busy:
        parts.append(f"busy with other work during {', '.join(busy)}")
    return "; ".join(parts)


def shown_as(figure: Figure) -> str:
    """Figure and interval in one cell."""
    value, interval, _ = cells(figure)
    return (f"{value} ({interval})" if interval else value).replace("*", r"\*")


def carries_over(known: list[Figure]) -> str:
    """Whether the machines agree about the goal; empty where there is nothing to compare."""
    if len(known) < 2 or known[0].met is None:
        return ""
    return "yes" if len({figure.met for figure in known}) == 1 else "no"


if __name__ == "__main__":
    main()
