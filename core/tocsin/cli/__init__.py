"""Command line: one module for each command or group of commands."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from tocsin.cli import (
    admin,
    apply,
    audit,
    check,
    clients,
    database,
    deliveries,
    destinations,
    investigations,
    keys,
    plugins,
    prove,
    providers,
    schedules,
    search,
    serve,
    sync,
    templates,
    trace,
    webhooks,
)
from tocsin.errors import OperatorError
from tocsin.store import UnusableDatabaseError, describe_fault, find_fault

MISTAKE_STATUS = 2
"""Exit status for an error that the operator can correct."""
DATABASE_STATUS = 3
"""Exit status where the database is at fault: unreachable, read-only, full, damaged."""

app = typer.Typer(
    name="tocsin",
    help="Sync incidents from SIEMs, investigate them and notify downstream systems.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("serve")(serve.serve)
app.command("check")(check.check)
app.command("apply")(apply.apply)
app.command("providers")(providers.providers)
app.command("coverage")(providers.coverage)
app.command("quarantine")(providers.quarantine)
app.command("trace")(trace.trace)
app.command("prove")(prove.prove)
app.command("search")(search.search)
app.add_typer(sync.app, name="sync")
app.add_typer(investigations.app, name="investigations")
app.add_typer(schedules.app, name="schedules")
app.add_typer(deliveries.app, name="deliveries")
app.add_typer(destinations.app, name="destinations")
app.add_typer(database.app, name="db")
app.add_typer(admin.app, name="admin")
app.add_typer(keys.app, name="keys")
app.add_typer(clients.app, name="clients")
app.add_typer(audit.app, name="audit")
app.add_typer(plugins.app, name="plugins")
app.add_typer(templates.app, name="templates")
app.add_typer(webhooks.app, name="webhooks")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(version("tocsin"))
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line.

    Exits without a traceback on an operator's error (2) and on a fault of the database (3).
    """
    try:
        app()
    except UnusableDatabaseError as error:
        print(error, file=sys.stderr)
        sys.exit(DATABASE_STATUS)
    except OperatorError as error:
        print(error, file=sys.stderr)
        sys.exit(MISTAKE_STATUS)
    except Exception as error:
        if find_fault(error) is None:
            raise
        print(describe_fault(error), file=sys.stderr)
        sys.exit(DATABASE_STATUS)
