"""`tocsin clients`: API clients of a running service."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records, print_text
from tocsin.cli.responses import print_secret
from tocsin.cli.service_api import AdminToken, ApiUrl, Limit, Search, admin_path, run_on_api
from tocsin.credentials import Scope

app = typer.Typer(no_args_is_help=True, help="Manage API clients.")

_COLUMNS = Columns(
    ("client_id", "name", "status", "scopes", "created_by", "created_at", "last_used_at"),
    brief=("client_id", "name", "status", "scopes", "last_used_at"),
)
ClientId = Annotated[str, typer.Argument(metavar="CLIENT_ID", help="ID of the API client.")]


@app.command()
def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the API client.")],
    scope: Annotated[
        list[str], typer.Option(help=f"Scope to grant (repeatable): {', '.join(sorted(Scope))}.")
    ],
    description: Annotated[str | None, typer.Option(help="Purpose of the API client.")] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Create an API client and print its ID and secret.

    Standard output contains only the ID and the secret, separated by a tab; details go to standard
    error.
    """
    body = {"name": name, "description": description, "scopes": scope}
    answer = run_on_api(
        url, token, lambda api: api.call("POST", admin_path("api-clients"), body=body)
    )
    remark = f"the client {answer['client_id']} uses the token endpoint {answer['token_endpoint']}"
    print_secret(answer, "client_id", "client_secret", remark=remark, as_json=as_json)


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
    """List API clients, newest first."""
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(admin_path("api-clients"), "clients", limit=limit, search=search),
    )
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def show(
    client_id: ClientId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Show an API client."""
    record = run_on_api(
        url, token, lambda api: api.call("GET", admin_path("api-clients", client_id))
    )
    print_record(record, _COLUMNS.every, as_json=as_json)


@app.command()
def regenerate_secret(
    client_id: ClientId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Replace an API client's secret and print the new one.

    The old secret stops working immediately; access tokens stay valid until they expire. Standard
    output contains only the new secret; details go to standard error.
    """
    path = admin_path("api-clients", client_id, "regenerate-secret")
    answer = run_on_api(url, token, lambda api: api.call("POST", path))
    remark = f"the old secret of the client {answer['client_id']} no longer works"
    print_secret(answer, "client_secret", remark=remark, as_json=as_json)


@app.command()
def revoke_tokens(
    client_id: ClientId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Revoke all access tokens of an API client."""
    path = admin_path("api-clients", client_id, "revoke-tokens")
    record = run_on_api(url, token, lambda api: api.call("POST", path))
    print_record(record, _COLUMNS.every, as_json=as_json)


@app.command()
def disable(
    client_id: ClientId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Disable an API client permanently.

    The client's access tokens stay valid until they expire or you revoke them.
    """
    path = admin_path("api-clients", client_id)
    record = run_on_api(url, token, lambda api: api.call("DELETE", path))
    remark = (
        "the client's access tokens stay valid until they expire; to revoke them now, run `tocsin "
        "clients revoke-tokens`"
    )
    print_text(remark, file=sys.stderr)
    print_record(record, _COLUMNS.every, as_json=as_json)
