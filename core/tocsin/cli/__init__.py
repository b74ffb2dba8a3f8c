"""Command line: one module for each command or group of commands."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Annotated, NoReturn

import typer

from tocsin.cli.commands import CommandGroup
from tocsin.cli.output import print_text
from tocsin.errors import OperatorError

app = typer.Typer(
    cls=CommandGroup,
    name="tocsin",
    help="Sync incidents from SIEMs, investigate them and notify downstream systems.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print_text(version("tocsin"))
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.obj is not None:
        context.obj()


def _configure_logs() -> None:
    """Log warnings to standard error until a command reads the log settings."""
    from tocsin.logs import configure_logs

    configure_logs("console", "warning")


def main() -> None:
    """Run the command line."""
    run(lambda: app(obj=_configure_logs))


def run(command: Callable[[], object]) -> None:
    """Run a command.

    Exits without a traceback, with status 2 for an operator's error and 3 for a database fault.
    """
    sys.excepthook = _print_traceback
    try:
        command()
    except OperatorError as error:
        _exit(error)
    except Exception as error:  # noqa: BLE001 - raised again if it is no fault
        from tocsin.store import require_fault

        _exit(require_fault(error))


def _print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an unexpected error, whose text can come from outside Tocsin."""
    print_text(*traceback.format_exception(kind, error, trace), sep="", end="", file=sys.stderr)


def _exit(error: OperatorError) -> NoReturn:
    print_text(error, file=sys.stderr)
    sys.exit(error.exit_status)
