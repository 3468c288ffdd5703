"""The Typer app, and the options that several commands share."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from tombola.cli import console
from tombola.cli.interrupts import ANEW, GOES_ON, interrupted
from tombola.recipe.builtin import recipe_names
from tombola.version import __version__

app = typer.Typer(
    name="tombola",
    help="Find sparse and robust subnetworks (winning tickets) in pre-trained language models, and ship them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


GENERAL = "General options"
"""The panel of `--help` for options that mean the same in every command, below the command's own."""


def _named_recipes(incomplete: str) -> list[str]:
    return [name for name in recipe_names() if name.startswith(incomplete)]


Recipe = Annotated[
    str,
    typer.Argument(help="A recipe file, or the name of a built-in recipe.", autocompletion=_named_recipes),
]
Overrides = Annotated[list[str] | None, typer.Argument(help="Changes, as key=value; a list makes a grid.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Folder for results and tickets.", show_default="runs/NAME"),
]
Store = Annotated[
    str | None,
    typer.Option(
        help="The store of finished stages: a folder, or a URL such as s3://bucket/store.",
        envvar="TOMBOLA_STORE",
        show_default="~/.cache/tombola/store",
        rich_help_panel=GENERAL,
    ),
]
DATA_FOLDER = "TOMBOLA_DATA"
"""The environment variable that stands for `--data`."""
Data = Annotated[
    Path | None, typer.Option(help="Root of local data folders.", envvar=DATA_FOLDER, show_default=False)
]
Model = Annotated[str, typer.Argument(help="A ticket or a model: local folder, hub id or .onnx file.")]
TaskName = Annotated[
    str | None, typer.Option(help="The model's task; tickets know theirs, multi-task tickets have several.")
]
MaxLength = Annotated[
    int | None, typer.Option(help="Truncate texts to this many tokens; by default as in training, or 128.")
]
Stride = Annotated[
    int | None,
    typer.Option(
        help="Read longer texts in windows this many tokens apart; by default they are truncated.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and its cost; run nothing.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Replace the result of another recipe in the output folder.")
]
Report = Annotated[bool, typer.Option(help="Also write report.html.", rich_help_panel=GENERAL)]
EngineName = Annotated[
    Literal["local", "ray"] | None,
    typer.Option("--engine", help="What runs the stages.", show_default="local", rich_help_panel=GENERAL),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes on this machine.", show_default="1", rich_help_panel=GENERAL)
]
Address = Annotated[
    str | None, typer.Option(help="Address of a Ray cluster, or auto.", rich_help_panel=GENERAL)
]

Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        help="A Python file or module with your own methods; may be repeated.",
        metavar="FILE_OR_MODULE",
        rich_help_panel=GENERAL,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Show errors and the paths of results only.", rich_help_panel=GENERAL),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Write events and the result to stdout, one JSON object per line.",
        rich_help_panel=GENERAL,
    ),
]


def verb(
    name: str | None = None, *, to: typer.Typer = app, long: bool = False, resumes: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command. Its first argument is the `Screen`; the others are options.

    An argument whose type is a dataclass adds one option per field. Every command also takes `--plugin`, and
    long-running ones take `--quiet` and `--json`.

    Args:
        name: The name of the command; by default that of the function.
        to: The app or group that it belongs to.
        long: Whether it runs long enough to report progress.
        resumes: Whether the same call resumes after an interrupt.
    """
    shared: dict[str, tuple[Any, Any]] = {"plugin": (Plugins, None)}
    if long:
        shared |= {"quiet": (Quiet, False), "json": (Json, False)}

    def register(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        parameters, groups = _spread(list(signature.parameters.values())[1:])
        added = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for key, (kind, default) in shared.items()
        ]

        def call(
            *, plugin: list[str] | None, quiet: bool = False, json: bool = False, **options: Any
        ) -> None:
            with console.opened(quiet=quiet, as_json=json) as screen:
                try:
                    load_plugins(plugin)
                    grouped = {
                        key: kind(**{field.name: options.pop(field.name) for field in fields(kind)})
                        for key, kind in groups.items()
                    }
                    function(screen, **grouped, **options)
                except BaseException as error:
                    if interrupted(error):
                        screen.fail("interrupted")
                        console.stop(GOES_ON if resumes else ANEW, 130)
                    if (sentence := console.sentence_of(error)) is not None:
                        screen.fail(sentence)
                    raise

        command: Any = wraps(function)(call)
        command.__signature__ = signature.replace(parameters=[*parameters, *added])
        command.__annotations__ = {
            parameter.name: parameter.annotation for parameter in (*parameters, *added)
        }
        del command.__wrapped__  # its signature differs
        to.command(name, help=_reflowed(inspect.getdoc(function) or ""))(command)
        return function

    return register


def _reflowed(text: str) -> str:
    """Return a docstring with a line per paragraph, since typer keeps the line breaks of all but the first."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _spread(parameters: list[inspect.Parameter]) -> tuple[list[inspect.Parameter], dict[str, type[Any]]]:
    """Return keyword parameters, with dataclasses replaced by their fields, and the dataclasses by parameter name."""
    spread: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in parameters:
        kind = parameter.annotation
        if not isinstance(kind, type) or not is_dataclass(kind):
            spread.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind
        hints = get_type_hints(kind, include_extras=True)
        spread += [
            parameter.replace(annotation=hints[name])
            for name, parameter in inspect.signature(kind).parameters.items()
        ]
    return spread, groups


def load_plugins(names: list[str] | None) -> None:
    """Import the user's plugins, which register methods, tasks and the like."""
    if names:
        from tombola.foundations import plugins

        plugins.load_plugins(names)


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    plugin: Plugins = None,
) -> None:
    """Set up what all commands share."""
    if version:
        typer.echo(f"tombola {__version__}")
        raise typer.Exit
    from tombola.foundations.hardware.threads import wait_patiently

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    wait_patiently()
    load_plugins(plugin)
