"""The progress bar shows what a run tells it."""

import io

from rich.console import Console

from tombola.training import progress_bar


def test_the_bar_shows_steps_and_figures() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress_bar("retraining", console) as progress:
        progress(3, 10, {"epoch": 0.5, "loss": 0.69312})
    shown = console.file.getvalue()
    assert "retraining" in shown
    assert "3/10" in shown
    assert "loss 0.6931" in shown
