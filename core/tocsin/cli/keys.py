"""`tocsin keys`: API keys of a running service."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.responses import print_secret
from tocsin.cli.service_api import AdminToken, ApiUrl, Limit, Search, admin_path, run_on_api
from tocsin.credentials import Scope

app = typer.Typer(no_args_is_help=True, help="Manage API keys.")

_COLUMNS = Columns(
    (
        "key_id",
        "name",
        "status",
        "scopes",
        "created_by",
        "created_at",
        "expires_at",
        "last_used_at",
    ),
    brief=("key_id", "name", "status", "scopes", "expires_at", "last_used_at"),
)
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="ID of the API key.")]


@app.command()
def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the API key.")],
    scope: Annotated[
        list[str], typer.Option(help=f"Scope to grant (repeatable): {', '.join(sorted(Scope))}.")
    ],
    description: Annotated[str | None, typer.Option(help="Purpose of the API key.")] = None,
    expires_in_days: Annotated[
        int | None, typer.Option(help="Days until the key expires. Default: 365.")
    ] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Create an API key and print it.

    Standard output contains only the key; details go to standard error.
    """
    body = {
        "name": name,
        "description": description,
        "scopes": scope,
        "expires_in_days": expires_in_days,
    }
    answer = run_on_api(url, token, lambda api: api.call("POST", admin_path("api-keys"), body=body))
    remark = f"the key {answer['key_id']} expires at {answer['expires_at']}"
    print_secret(answer, "api_key", remark=remark, as_json=as_json)


@app.command("list")
def list_all(
    *,
    search: Search = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List API keys, newest first."""
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(admin_path("api-keys"), "api_keys", limit=limit, search=search),
    )
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def show(
    key_id: KeyId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Show the details of an API key, but not its value."""
    record = run_on_api(url, token, lambda api: api.call("GET", admin_path("api-keys", key_id)))
    print_record(record, _COLUMNS.every, as_json=as_json)


@app.command()
def rotate(
    *,
    key_id: KeyId,
    grace_period_days: Annotated[
        int | None,
        typer.Option(
            help="How many days the old value stays valid. With 0, it stops working immediately. "
            "Default: 7."
        ),
    ] = None,
    expires_in_days: Annotated[
        int | None, typer.Option(help="Days until the key expires. Default: unchanged.")
    ] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Replace the value of an API key and print the new value.

    Standard output contains only the new value; details go to standard error.
    """
    body = {"grace_period_days": grace_period_days, "expires_in_days": expires_in_days}
    path = admin_path("api-keys", key_id, "rotate")
    answer = run_on_api(url, token, lambda api: api.call("POST", path, body=body))
    until = answer["previous_key_expires_at"]
    old = f"works until {until}" if until else "no longer works"
    remark = f"the key {answer['key_id']} expires at {answer['expires_at']}; the old value {old}"
    print_secret(answer, "api_key", remark=remark, as_json=as_json)


@app.command()
def disable(
    key_id: KeyId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Disable an API key permanently.

    The key stops working immediately, and so does an old value that is still in its grace period.
    """
    record = run_on_api(url, token, lambda api: api.call("DELETE", admin_path("api-keys", key_id)))
    print_record(record, _COLUMNS.every, as_json=as_json)
