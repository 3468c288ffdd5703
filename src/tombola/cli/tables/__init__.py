"""Tables for the terminal. Each fits 80 columns, and imports only what it needs."""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily

if TYPE_CHECKING:
    from tombola.cli.tables.comparison import comparison_table
    from tombola.cli.tables.compression import compression_table
    from tombola.cli.tables.decisions import (
        claim_lines,
        matching_lines,
        phase_table,
        share_table,
        transfer_table,
    )
    from tombola.cli.tables.layout import Sentence
    from tombola.cli.tables.models import (
        attack_table,
        attacks_table,
        catalogue_table,
        export_table,
        mask_table,
        overlap_table,
        scaled,
        score_table,
        size_table,
    )
    from tombola.cli.tables.plan import plan_table
    from tombola.cli.tables.results import result_table

_HOME = {
    "Sentence": "layout",
    "attack_table": "models",
    "attacks_table": "models",
    "catalogue_table": "models",
    "claim_lines": "decisions",
    "comparison_table": "comparison",
    "compression_table": "compression",
    "export_table": "models",
    "mask_table": "models",
    "matching_lines": "decisions",
    "overlap_table": "models",
    "phase_table": "decisions",
    "plan_table": "plan",
    "result_table": "results",
    "scaled": "models",
    "score_table": "models",
    "share_table": "decisions",
    "size_table": "models",
    "transfer_table": "decisions",
}

__all__ = [
    "Sentence",
    "attack_table",
    "attacks_table",
    "catalogue_table",
    "claim_lines",
    "comparison_table",
    "compression_table",
    "export_table",
    "mask_table",
    "matching_lines",
    "overlap_table",
    "phase_table",
    "plan_table",
    "result_table",
    "scaled",
    "score_table",
    "share_table",
    "size_table",
    "transfer_table",
]

__getattr__ = lazily(__name__, _HOME)
