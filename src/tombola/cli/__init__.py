"""The command. Each verb is a few lines over one function of the library."""

import sys

import typer

from tombola.cli import drawing, finding, judging, reporting, sharing, shipping, storing, studying
from tombola.cli.options import app
from tombola.errors import TombolaError

__all__ = [
    "app",
    "drawing",
    "finding",
    "judging",
    "main",
    "reporting",
    "sharing",
    "shipping",
    "storing",
    "studying",
]


def main() -> None:
    """Run the command; a user's mistake is one sentence and exit code 2."""
    try:
        app(prog_name="tombola")
    except TombolaError as error:
        typer.secho(f"tombola: {error}", fg=typer.colors.RED, err=True)
        sys.exit(2)
    except OSError as error:
        if error.strerror is None or error.filename is None:
            raise
        typer.secho(f"tombola: {error.filename}: {error.strerror}", fg=typer.colors.RED, err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.secho("tombola: interrupted; the same command goes on where it stopped", err=True)
        sys.exit(130)
