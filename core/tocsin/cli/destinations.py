"""`tocsin destinations`: the destinations of a running Tocsin."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.admin_api import AdminToken, ApiUrl, Limit, admin_path, run_on_api
from tocsin.cli.output import AsJson
from tocsin.cli.responses import print_columns
from tocsin.model import EventType

app = typer.Typer(no_args_is_help=True, help="Destinations of a running Tocsin, over its HTTP API.")

_COLUMNS = (
    "name",
    "plugin",
    "managed_by",
    "state",
    "reason",
    "failures",
    "held_until",
    "updated_at",
)
_DETAILS = (*_COLUMNS, "waiting", "dead", "detail", "settings", "secrets")
_OUTCOME = (
    "outcome",
    "status",
    "duration_ms",
    "reason",
    "remote_id",
    "remote_url",
    "response",
    "event_id",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The destination's name.")]


@app.command("list")
def list_all(
    state: Annotated[
        str | None,
        typer.Option(help="Only those that are `active`, `paused`, `disabled` or `deleted`."),
    ] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """List the destinations, by name, never their secrets."""
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(
            admin_path("destinations"), "destinations", limit=limit, state=state
        ),
    )
    print_columns(records, _COLUMNS, as_json=as_json)


@app.command()
def show(name: Name, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False) -> None:
    """Show one destination, with its settings and how many deliveries to it rest."""
    record = run_on_api(url, token, lambda api: api.call("GET", admin_path("destinations", name)))
    print_columns([record], _DETAILS, as_json=as_json)


@app.command("test")
def send_test(
    *,
    name: Name,
    event: Annotated[
        str | None,
        typer.Option(help=f"By default incident-alert. One of: {', '.join(EventType)}."),
    ] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Send a marked test event to a destination now, once, and show what was answered.

    Exit status 0: it was delivered. 1: it was not.
    """
    path, body = admin_path("destinations", name, "test"), {"event_type": event}
    result = run_on_api(url, token, lambda api: api.call("POST", path, body=body))
    print_columns([result], _OUTCOME, as_json=as_json)
    if result["outcome"] != "delivered":
        raise typer.Exit(1)


@app.command()
def resume(
    name: Name, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """End a stop that came by itself, and send the deliveries on hold."""
    path = admin_path("destinations", name, "resume")
    record = run_on_api(url, token, lambda api: api.call("POST", path))
    print_columns([record], _COLUMNS, as_json=as_json)


@app.command()
def delete(
    name: Name, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Delete a destination that was made over HTTP; what waits for it is not sent."""
    path = admin_path("destinations", name)
    record = run_on_api(url, token, lambda api: api.call("DELETE", path))
    print_columns([record], _COLUMNS, as_json=as_json)
