"""An HTML page of an attack: every success with its changed words highlighted, old above new."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, Template

from tombola.attacks.text import Text

if TYPE_CHECKING:
    from tombola.attacks.report import AttackReport, Example


def diff_page(report: "AttackReport") -> str:
    """Render a self-contained HTML page, with all texts escaped."""
    order = ("Successful", "Failed", "Skipped")
    examples = sorted(report.examples, key=lambda example: order.index(example.result_type))
    return _template().render(
        report=report,
        summary=report.summary(),
        curve=report.by_changed_words(),
        examples=[_shown(report, example) for example in examples],
    )


@lru_cache(maxsize=1)
def _template() -> Template:
    source = (Path(__file__).parent / "diff.html").read_text(encoding="utf-8")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)


def _shown(report: "AttackReport", example: "Example") -> dict[str, Any]:
    marked = example.changes if example.result_type == "Successful" else {}
    return {
        "example": example,
        "truth": report.labels[example.ground_truth_output],
        "before": report.labels[example.original_output],
        "after": report.labels[example.perturbed_output],
        "old": _columns(report, example.original_text, marked),
        "new": _columns(report, example.perturbed_text, marked),
    }


def _columns(
    report: "AttackReport", text: Text, marked: dict[int, str]
) -> list[tuple[str, list[tuple[str, bool]]]]:
    return [(name, list(text.pieces(c, marked))) for c, name in enumerate(report.columns)]
