"""`tocsin audit`: list and verify the audit log."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from tocsin.audit import SEAL, AuditVerification
from tocsin.audit import verify as verify_chain
from tocsin.cli.database import run_on_database
from tocsin.cli.marks import Mark
from tocsin.cli.output import (
    AsJson,
    Columns,
    Wide,
    print_json,
    print_marked,
    print_record,
    print_records,
)
from tocsin.cli.service_api import AdminToken, ApiUrl, Limit, admin_path, run_on_api
from tocsin.clock import SystemClock
from tocsin.credentials import adopt_keys, adopt_lost_keys, open_vault
from tocsin.errors import OperatorError
from tocsin.settings import load_settings
from tocsin.store import Database

app = typer.Typer(no_args_is_help=True, help="List and verify the audit log.")

_COLUMNS = Columns(
    ("at", "actor", "action", "target", "address", "count", "request_id", "details"),
    brief=("at", "actor", "action", "target", "details"),
)

_VERIFIED = ("entries", "unsealed", "head", "problems")
_HEAD = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{64})")


@app.command("list")
def list_all(
    *,
    action: Annotated[
        str | None, typer.Option(help="Only entries with this action, such as api-key.create.")
    ] = None,
    actor: Annotated[
        str | None, typer.Option(help="Only entries by this actor, such as admin:ana.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Only entries about this target, such as destination:soar.")
    ] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the newest audit entries of a running service."""
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(
            admin_path("audit"), "entries", limit=limit, action=action, actor=actor, target=target
        ),
    )
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def verify(
    *,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="POSITION:SEAL",
            help="Head that an earlier run printed. Detects entries that "
            "have since been removed from the end of the log.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the audit log for changed or missing entries.

    Reads the database directly and requires the encryption key. Prints the head of the log, which
    consists of the position and the seal of the newest sealed entry. Save the head on another
    system. To detect entries that were removed from the end of the log, pass the saved head to a
    later run with `--head`.

    Exit status: 0 if the log is intact, 1 if it is not.
    """
    settings = load_settings()
    witnessed = _parse_head(head)
    vault = open_vault(settings, generate=False)

    async def verify_all(database: Database) -> AuditVerification:
        try:
            await database.read(adopt_keys, vault)
        except OperatorError:  # a key that was given up still verifies what it has sealed
            await database.read(adopt_lost_keys, vault)
        key, now = vault.derive(SEAL), SystemClock().now()
        return await database.read(verify_chain, key, now=now, head=witnessed)

    found = run_on_database(settings, verify_all)
    record = {
        "entries": found.entries,
        "unsealed": found.unsealed,
        "head": f"{found.head_position}:{found.head_seal}" if found.head_position else None,
        "problems": found.problems,
    }
    if as_json:
        print_json([record])
    else:
        print_record(record | {"problems": len(found.problems)}, _VERIFIED, as_json=False)
        for problem in found.problems:
            print_marked(Mark.BAD, problem, file=sys.stderr)
    if found.problems:
        raise typer.Exit(1)


def _parse_head(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    match = _HEAD.fullmatch(text)
    if match is None:
        raise OperatorError(
            f"--head: found {text!r}; use the head that `tocsin audit verify` printed"
        )
    return int(match[1]), match[2]
