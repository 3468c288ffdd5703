"""The Python API: one function per command; the command line calls the same functions.

`running` runs recipes, `compressing` compresses a classifier, `pruning` prunes a whole language model, `tickets` works
on tickets and models, `predicting` predicts new texts, `data` writes task files, and `overview` lists, checks and
reports. Each function is imported when it is first used.
"""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily

if TYPE_CHECKING:
    from tombola.api.compressing import compress, quickstart
    from tombola.api.data import init_task
    from tombola.api.overview import catalogue, compare, doctor, report, validate
    from tombola.api.predicting import glue_submission, predict, predict_file
    from tombola.api.pruning import prune
    from tombola.api.running import (
        plan_run,
        plan_share,
        plan_transfer,
        run,
        share,
        study,
        transfer,
    )
    from tombola.api.tickets import (
        attack,
        convert_pruned_heads,
        evaluate,
        export,
        import_mask,
        inspect,
        pack,
        shrink,
    )

_HOME = {
    "attack": "tickets",
    "catalogue": "overview",
    "compare": "overview",
    "compress": "compressing",
    "convert_pruned_heads": "tickets",
    "doctor": "overview",
    "evaluate": "tickets",
    "export": "tickets",
    "glue_submission": "predicting",
    "import_mask": "tickets",
    "init_task": "data",
    "inspect": "tickets",
    "pack": "tickets",
    "plan_run": "running",
    "plan_share": "running",
    "plan_transfer": "running",
    "predict": "predicting",
    "predict_file": "predicting",
    "prune": "pruning",
    "quickstart": "compressing",
    "report": "overview",
    "run": "running",
    "share": "running",
    "shrink": "tickets",
    "study": "running",
    "transfer": "running",
    "validate": "overview",
}

__all__ = [
    "attack",
    "catalogue",
    "compare",
    "compress",
    "convert_pruned_heads",
    "doctor",
    "evaluate",
    "export",
    "glue_submission",
    "import_mask",
    "init_task",
    "inspect",
    "pack",
    "plan_run",
    "plan_share",
    "plan_transfer",
    "predict",
    "predict_file",
    "prune",
    "quickstart",
    "report",
    "run",
    "share",
    "shrink",
    "study",
    "transfer",
    "validate",
]

__getattr__ = lazily(__name__, _HOME)
