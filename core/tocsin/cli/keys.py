"""`tocsin keys`: the API keys of a running Tocsin."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.admin_api import AdminToken, ApiUrl, Limit, Search, admin_path, run_on_api
from tocsin.cli.output import AsJson
from tocsin.cli.responses import print_columns, print_secret
from tocsin.credentials import Scope

app = typer.Typer(no_args_is_help=True, help="API keys of a running Tocsin, over its HTTP API.")

_COLUMNS = (
    "key_id",
    "name",
    "status",
    "scopes",
    "created_by",
    "created_at",
    "expires_at",
    "last_used_at",
)
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's public identifier.")]


@app.command()
def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is called.")],
    scope: Annotated[
        list[str], typer.Option(help=f"May be repeated. One of: {', '.join(sorted(Scope))}.")
    ],
    description: Annotated[str | None, typer.Option(help="What the key is for.")] = None,
    expires_in_days: Annotated[int | None, typer.Option(help="By default 365.")] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Create a key. Prints it on standard output, and nothing else."""
    body = {
        "name": name,
        "description": description,
        "scopes": scope,
        "expires_in_days": expires_in_days,
    }
    answer = run_on_api(url, token, lambda api: api.call("POST", admin_path("api-keys"), body=body))
    remark = f"key {answer['key_id']}, until {answer['expires_at']}"
    print_secret(answer, "api_key", remark=remark, as_json=as_json)


@app.command("list")
def list_all(
    search: Search = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """List the keys, never their values."""
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(admin_path("api-keys"), "api_keys", limit=limit, search=search),
    )
    print_columns(records, _COLUMNS, as_json=as_json)


@app.command()
def show(
    key_id: KeyId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Show one key."""
    record = run_on_api(url, token, lambda api: api.call("GET", admin_path("api-keys", key_id)))
    print_columns([record], _COLUMNS, as_json=as_json)


@app.command()
def rotate(
    *,
    key_id: KeyId,
    grace_period_days: Annotated[
        int | None,
        typer.Option(help="How long the old value still works, by default 7; 0 ends it at once."),
    ] = None,
    expires_in_days: Annotated[
        int | None, typer.Option(help="By default the key's expiry stays as it is.")
    ] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Give a key a new value. Prints that on standard output, and nothing else."""
    body = {"grace_period_days": grace_period_days, "expires_in_days": expires_in_days}
    path = admin_path("api-keys", key_id, "rotate")
    answer = run_on_api(url, token, lambda api: api.call("POST", path, body=body))
    until = answer["previous_key_expires_at"]
    old = f"works until {until}" if until else "no longer works"
    remark = f"key {answer['key_id']}, until {answer['expires_at']}; the old value {old}"
    print_secret(answer, "api_key", remark=remark, as_json=as_json)


@app.command()
def disable(
    key_id: KeyId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """End a key for good, at once; an old value in its grace period with it."""
    record = run_on_api(url, token, lambda api: api.call("DELETE", admin_path("api-keys", key_id)))
    print_columns([record], _COLUMNS, as_json=as_json)
