"""`tocsin destinations`: destinations of a running service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tocsin.cli.emergency_stops import For, Reason, Until, build_stop
from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.service_api import AdminToken, ApiUrl, Limit, admin_path, run_on_api
from tocsin.model import EventType

app = typer.Typer(no_args_is_help=True, help="Manage destinations.")

_COLUMNS = Columns(
    (
        "name",
        "plugin",
        "managed_by",
        "state",
        "reason",
        "failures",
        "held_until",
        "updated_at",
        "detail",
    ),
    brief=("name", "plugin", "state", "held_until", "reason", "detail"),
)
_DETAILS = (*_COLUMNS.every, "waiting", "dead", "stop", "settings", "secrets")
_RESUMED = (*_COLUMNS.every, "released")
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
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the destination.")]


@app.command("list")
def list_all(
    *,
    state: Annotated[
        str | None,
        typer.Option(
            help="Only destinations in this state: active, paused, disabled or deleted. "
            "Default: all except deleted."
        ),
    ] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List destinations by name."""
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(
            admin_path("destinations"), "destinations", limit=limit, state=state
        ),
    )
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def show(name: Name, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False) -> None:
    """Show a destination with its settings and delivery counts."""
    record = run_on_api(url, token, lambda api: api.call("GET", admin_path("destinations", name)))
    print_record(record, _DETAILS, as_json=as_json)


@app.command("test")
def send_test(
    *,
    name: Name,
    event: Annotated[
        str | None,
        typer.Option(help=f"Type of the event: {', '.join(EventType)}. Default: incident-alert."),
    ] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Send a test event to a destination and show the response.

    Sends the event once, marked as a test, even if the destination is disabled or its filters would
    exclude the event.

    Exit status: 0 if the event was delivered, 1 if it was not.
    """
    path, body = admin_path("destinations", name, "test"), {"event_type": event}
    result = run_on_api(url, token, lambda api: api.call("POST", path, body=body))
    print_record(result, _OUTCOME, as_json=as_json)
    if result["outcome"] != "delivered":
        raise typer.Exit(1)


@app.command()
def resume(
    name: Name, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Resume a destination that Tocsin paused or disabled.

    Also sends the destination's deliveries that are on hold or wait for their next attempt, even
    if the destination is active. In the output, `released` is the number of these deliveries. To
    enable a destination that was disabled manually, run `tocsin destinations enable` instead.
    """
    path = admin_path("destinations", name, "resume")
    record = run_on_api(url, token, lambda api: api.call("POST", path))
    print_record(record, _RESUMED, as_json=as_json)


@app.command()
def disable(
    *,
    name: Name,
    until: Until = None,
    lasting: For = None,
    reason: Reason = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Stop sending to a destination until it is enabled again.

    With --until or --for, Tocsin enables the destination automatically. Otherwise, the
    destination stays disabled until someone runs `tocsin destinations enable`. While the
    destination is disabled, its deliveries are on hold. Applying plugins.toml does not
    enable the destination.
    """
    _switch(name, url, token, build_stop(until, lasting, reason), as_json=as_json)


@app.command()
def enable(
    name: Name, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Enable a destination that was disabled manually.

    Also sends the deliveries that were on hold while the destination was disabled.
    """
    _switch(name, url, token, {"enabled": True}, as_json=as_json)


def _switch(
    name: str, url: str | None, token: str | None, body: Mapping[str, Any], *, as_json: bool
) -> None:
    path = admin_path("destinations", name)
    record = run_on_api(url, token, lambda api: api.call("PATCH", path, body=body))
    print_record(record, _COLUMNS.every, as_json=as_json)


@app.command()
def delete(
    name: Name, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Delete a destination.

    You cannot delete a destination that plugins.toml or a plugin defines. The destination's
    unfinished deliveries are not sent.
    """
    path = admin_path("destinations", name)
    record = run_on_api(url, token, lambda api: api.call("DELETE", path))
    print_record(record, _COLUMNS.every, as_json=as_json)
