"""Output of the commands: tables and paths go to stdout, progress to stderr, events to stdout with `--json`."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from rich.console import Console, RenderableType

from tombola.errors import TombolaError

if TYPE_CHECKING:
    from tombola.cli.progress import Display, View

out = Console()
err = Console(stderr=True)


class Screen:
    """The output of one command.

    Args:
        quiet: Show errors and the paths of results only.
        events: The stream for JSON events; everything else then goes to stderr.
        muted: Show nothing: in a run of several processes, only the first prints.
    """

    def __init__(self, *, quiet: bool = False, events: TextIO | None = None, muted: bool = False) -> None:
        self.quiet, self.events, self.muted = quiet, events, muted
        self.paths: dict[str, str] = {}

    @property
    def results(self) -> Console:
        """The console for results."""
        return err if self.events else out

    def print(self, what: RenderableType) -> None:
        """Print a table or a sentence."""
        if not (self.quiet or self.muted):
            _print(self.results, what)

    def complain(self, text: str) -> None:
        """Print an error to stderr, even when quiet."""
        if not self.muted:
            err.print(text, style="red", soft_wrap=True, highlight=False, markup=False)

    def wrote(self, what: str, path: Path) -> None:
        """Print the path of a written file or folder."""
        self.paths[what] = str(path)
        if not self.muted and not (self.quiet and self.events):
            _print(self.results, f"{what:<8} {path}")

    def send_rows(self, event: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Send an event for each row of a result."""
        if self.events is not None and not self.muted:
            events = self._events()
            for row in rows:
                events.send_row(event, row)

    def finish(self, **figures: Any) -> None:
        """Send the final event: the paths that were written, and the command's main figures."""
        if self.events is not None and not self.muted:
            self._events().send("result", paths=self.paths, **figures)

    def fail(self, reason: str) -> None:
        """Send an event for a failure of the command itself."""
        if self.events is not None and not self.muted:
            self._events().send("failed", reason=reason)

    @contextmanager
    def watch(self, phase: str) -> Iterator[Display]:
        """Show progress while the command works; yield the display, which is passed on as the watcher.

        Args:
            phase: The phase before the first stage starts, such as "planning".
        """
        from tombola.cli.progress import Display

        with Display(*self._views()) as display:
            display.phase(phase)
            yield display

    def _views(self) -> list[View]:
        from tombola.cli.progress import Failures, Lines

        if self.muted:
            return []
        views: list[View] = [self._events()] if self.events is not None else []
        if self.quiet:
            return [*views, Failures()]
        if sys.stderr.isatty() and not err.is_dumb_terminal:
            from tombola.cli.bars import Bars

            return [*views, Bars(err)]
        return [*views, Lines()]

    def _events(self) -> Any:
        from tombola.cli.events import Events

        assert self.events is not None
        return Events(self.events)


def sentence_of(error: BaseException) -> str | None:
    """Return the sentence that explains an error to the user; None if it is not the user's mistake.

    Args:
        error: What a command raised.
    """
    if isinstance(error, TombolaError):
        return str(error)
    if not isinstance(error, OSError) or error.strerror is None:
        return None
    if error.errno == errno.ENOSPC:
        place = f"{error.filename}: " if error.filename else ""
        return (
            f"{place}{error.strerror}. Free some space (`tombola store gc`), or choose another disk with --output and "
            "--store"
        )
    return f"{error.filename}: {error.strerror}" if error.filename is not None else None


def stop(sentence: str, code: int) -> NoReturn:
    """Exit with a sentence, red on a terminal."""
    err.print(f"tombola: {sentence}", style="red", soft_wrap=True, highlight=False, markup=False)
    sys.exit(code)


@contextmanager
def _errors_only() -> Iterator[None]:
    """Silence the package's warnings."""
    logger = logging.getLogger("tombola")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _print(console: Console, what: RenderableType) -> None:
    """Print without wrapping lines, and without reading brackets as markup."""
    if isinstance(what, str):
        console.print(what, soft_wrap=True, highlight=False, markup=False)
    else:
        console.print(what, highlight=False)


@contextmanager
def opened(*, quiet: bool, as_json: bool) -> Iterator[Screen]:
    """Open the screen of one command. With `as_json`, only events reach stdout, whatever libraries print."""
    with ExitStack() as stack:
        stream = sys.stdout if as_json else None
        if as_json:
            stack.enter_context(redirect_stdout(sys.stderr))
        if quiet:
            stack.enter_context(_errors_only())
        yield Screen(quiet=quiet, events=stream, muted=os.environ.get("RANK", "0") != "0")
