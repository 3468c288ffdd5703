"""Assemble a page: content as JSON, the script that draws it, and a policy that forbids everything else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from tombola.foundations.checksums import write_whole
from tombola.report.attacked import attacked, figures
from tombola.report.claims import claims
from tombola.report.closing import failed, recipe
from tombola.report.comparison import side_by_side
from tombola.report.curves import against_sparsity, over_epochs, while_training
from tombola.report.frontier import frontier
from tombola.report.gathering import Sources, combine, gather
from tombola.report.headline import headline, matching
from tombola.report.lead import attack_lead, glance, lead
from tombola.report.losses import losses
from tombola.report.maps import freezing, masks, transfer
from tombola.report.parts import Lead, Section, plain
from tombola.report.robustness import by_changed_words
from tombola.report.rows import facets
from tombola.report.sharing import sharing
from tombola.report.transition import transition
from tombola.results.result import Result
from tombola.store.store import Store

REMARKS = 3
"""The number of remarks shown at the top of a page; the others are folded."""

HERE = Path(__file__).parent
SCRIPTS = ("vendor/echarts.common.min.js", "elements.js", "tables.js", "charts.js", "page.js")


def write_report(result: Result, path: Path | None = None, store: Store | Path | str | None = None) -> Path:
    """Write the page of a result into its folder, or to `path`."""
    return _write(Sources([result], {}), path or result.folder / "report.html", store)


def report(
    folders: Sequence[Path | str], path: Path | str, *, store: Store | Path | str | None = None
) -> Path:
    """Write a page about the runs, studies and attacks in some folders; attacked sentences come from the store."""
    return _write(gather(folders), Path(path), store)


def _write(sources: Sources, path: Path, store: Store | Path | str | None) -> Path:
    result = combine(sources.runs)
    store = Store.of(store)
    texts = attacked(result, sources.attacks, store)
    if result is None:
        names = ", ".join(sources.attacks)
        attack_sections = (figures(sources.attacks), by_changed_words(None, sources.attacks), texts)
        alone = [section for section in attack_sections if section]
        return render(path, names, "Attacks on text classifiers.", alone, attack_lead(sources.attacks))
    shared = _sections(result, sources, store) if result.cells else []
    sections = [section for section in (*shared, texts, failed(result), recipe(result)) if section]
    return render(path, result.name, result.record.about, sections, lead(result), _facets(result))


def _sections(result: Result, sources: Sources, store: Store) -> list[Section | None]:
    return [
        glance(result),
        claims(result),
        sharing(sources.runs),
        headline(result),
        side_by_side(result),
        against_sparsity(result),
        matching(result),
        transition(result),
        frontier(result),
        by_changed_words(result, sources.attacks),
        while_training(result),
        losses(result, store),
        over_epochs(result),
        transfer(result),
        *masks(result),
        freezing(result),
    ]


def _facets(result: Result) -> dict[str, list[str]]:
    """Return the facets to filter by: those with more than one value."""
    axes: dict[str, list[str]] = {}
    for row in result.summaries():
        for name, value in facets(row).items():
            values = axes.setdefault(name, [])
            if value not in values:
                values.append(value)
    return {name: values for name, values in axes.items() if len(values) > 1}


def render(
    path: Path,
    title: str,
    about: str,
    sections: Sequence[Section],
    lead: Lead | None = None,
    facets: dict[str, list[str]] | None = None,
) -> Path:
    """Fill the template and write the page."""
    environment = Environment(loader=PackageLoader("tombola.report", "."), autoescape=select_autoescape())
    script = "\n".join(_read(name) for name in SCRIPTS)
    page = environment.get_template("page.html").render(
        title=title,
        about=about,
        policy=_policy(script),
        style=Markup(_read("page.css")),
        script=Markup(script),
        lead=lead or Lead(""),
        shown=REMARKS,
        content=_json({"facets": facets or {}, "sections": plain(sections)}),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page, newline="\n")
    return path


def _json(content: Any) -> Markup:
    """Return JSON that is safe inside HTML."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _policy(script: str) -> str:
    """Return a content security policy that allows no network, no frames, and only this script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{directive} {source}" for directive, source in allowed.items())


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
