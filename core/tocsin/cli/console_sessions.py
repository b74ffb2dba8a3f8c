"""`tocsin console-sessions`: console sessions of all users."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.service_api import AdminToken, ApiUrl, Limit, admin_path, run_on_api
from tocsin.errors import OperatorError

app = typer.Typer(no_args_is_help=True, help="List and end console sessions of all users.")

_COLUMNS = Columns(
    ("id", "principal", "name", "role", "begun_at", "used_at", "expires_at", "address", "browser"),
    brief=("id", "principal", "role", "used_at", "address"),
)
_PATH = admin_path("console-sessions")


@app.command("list")
def list_all(
    *,
    principal: Annotated[
        str | None,
        typer.Option(help="Only sessions of this user: admin:NAME, person:NAME or oidc:SUBJECT."),
    ] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the active console sessions, newest first."""
    query = {} if principal is None else {"principal": principal}
    records = run_on_api(
        url, token, lambda api: api.collect(_PATH, "console_sessions", limit=limit, **query)
    )
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def end(
    *,
    session: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="ID of the console session. Starts with cse_."),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option(
            help="End all sessions of this user: admin:NAME, person:NAME or oidc:SUBJECT."
        ),
    ] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """End one console session, or all sessions of a user.

    The user can sign in again. To block a person who uses passkeys, run `tocsin people disable`. To
    block an OpenID Connect user, remove the user's roles at the issuer. To block an admin, revoke
    all admin tokens and links with `tocsin admin revoke-all`.
    """
    if (session is None) == (principal is None):
        raise OperatorError("use either the ID of a session or --principal")
    path = _PATH if session is None else admin_path("console-sessions", session)
    query = {"principal": principal}
    record = run_on_api(url, token, lambda api: api.call("DELETE", path, query=query))
    print_record(record, ("ended",), as_json=as_json)
