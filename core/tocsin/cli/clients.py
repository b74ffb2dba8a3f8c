"""`tocsin clients`: the API clients of a running Tocsin."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tocsin.cli.admin_api import AdminToken, ApiUrl, Limit, Search, admin_path, run_on_api
from tocsin.cli.output import AsJson
from tocsin.cli.responses import print_columns, print_secret
from tocsin.credentials import Scope

app = typer.Typer(no_args_is_help=True, help="API clients of a running Tocsin, over its HTTP API.")

_COLUMNS = ("client_id", "name", "status", "scopes", "created_by", "created_at", "last_used_at")
ClientId = Annotated[
    str, typer.Argument(metavar="CLIENT_ID", help="What the client sends to get tokens.")
]


@app.command()
def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the client is called.")],
    scope: Annotated[
        list[str], typer.Option(help=f"May be repeated. One of: {', '.join(sorted(Scope))}.")
    ],
    description: Annotated[str | None, typer.Option(help="What the client is for.")] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Create a client. Prints its id and secret with a tab between them, and nothing else."""
    body = {"name": name, "description": description, "scopes": scope}
    answer = run_on_api(
        url, token, lambda api: api.call("POST", admin_path("api-clients"), body=body)
    )
    remark = f"client {answer['client_id']}, for tokens from {answer['token_endpoint']}"
    print_secret(answer, "client_id", "client_secret", remark=remark, as_json=as_json)


@app.command("list")
def list_all(
    search: Search = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """List the clients, never their secrets."""
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(admin_path("api-clients"), "clients", limit=limit, search=search),
    )
    print_columns(records, _COLUMNS, as_json=as_json)


@app.command()
def show(
    client_id: ClientId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Show one client."""
    record = run_on_api(
        url, token, lambda api: api.call("GET", admin_path("api-clients", client_id))
    )
    print_columns([record], _COLUMNS, as_json=as_json)


@app.command()
def regenerate_secret(
    client_id: ClientId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Give a client a new secret; the old one ends at once. Prints it, and nothing else."""
    path = admin_path("api-clients", client_id, "regenerate-secret")
    answer = run_on_api(url, token, lambda api: api.call("POST", path))
    remark = f"client {answer['client_id']}; the old secret no longer works"
    print_secret(answer, "client_secret", remark=remark, as_json=as_json)


@app.command()
def revoke_tokens(
    client_id: ClientId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """End at once every access token that a client holds."""
    path = admin_path("api-clients", client_id, "revoke-tokens")
    record = run_on_api(url, token, lambda api: api.call("POST", path))
    print_columns([record], _COLUMNS, as_json=as_json)


@app.command()
def disable(
    client_id: ClientId, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """End a client for good. Tokens that it holds live on until they expire or are revoked."""
    path = admin_path("api-clients", client_id)
    record = run_on_api(url, token, lambda api: api.call("DELETE", path))
    remark = "its tokens live until they expire; `tocsin clients revoke-tokens` ends them now"
    print(remark, file=sys.stderr)
    print_columns([record], _COLUMNS, as_json=as_json)
