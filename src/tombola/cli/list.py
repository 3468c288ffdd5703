"""tombola list"""

from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb
from tombola.errors import TombolaError, UnknownName


@verb("list")
def list_(
    screen: Screen,
    words: Annotated[
        list[str] | None,
        typer.Argument(help="One list, such as tasks, attacks or recipes; a word to search for; or both."),
    ] = None,
) -> None:
    """List the tasks, methods, attacks and so on that recipes can use; without arguments, the first of every list.

    [bold]Example:[/bold] tombola list tasks
    """
    from tombola import api
    from tombola.cli import tables
    from tombola.recipe.catalogue import KINDS, summary

    if not words:
        screen.print(tables.catalogue_table("", summary()))
        screen.print(
            "tombola list KIND shows a whole list, tombola list WORD all entries that contain the word"
        )
        return
    kind, search = _meant(words, KINDS)
    lists = api.catalogue(kind, search)
    if not lists and kind is None:
        raise UnknownName("list", search, KINDS)
    if not lists:
        raise TombolaError(f"none of the {kind} contains {search!r}: see tombola list {kind}")
    for title, rows in lists.items():
        screen.print(tables.catalogue_table(title, rows))


def _meant(words: list[str], kinds: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return the list that the first words name, if any, and the words to search for."""
    for count in range(len(words), 0, -1):
        if (kind := " ".join(words[:count])) in kinds:
            return kind, " ".join(words[count:]) or None
    return None, " ".join(words)
