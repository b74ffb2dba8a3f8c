"""`tocsin suppressions`: suppression rules of a running service."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.service_api import AdminToken, ApiUrl, Limit, admin_path, run_on_api
from tocsin.errors import OperatorError

app = typer.Typer(no_args_is_help=True, help="Manage suppression rules.")

_COLUMNS = Columns(
    (
        *("name", "owner", "reason", "provider", "title", "entity", "cidr", "is_active"),
        *("suppressed_events", "ends_at", "created_by", "created_at"),
    ),
    brief=("name", "owner", "is_active", "suppressed_events", "ends_at", "reason"),
)
_OPTIONS = {
    **{field: f"--{field}" for field in ("owner", "reason", "provider", "title", "entity", "cidr")},
    "ends_at": "--until",
}
RuleName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the suppression rule.")]


@app.command()
def create(
    *,
    name: RuleName,
    owner: Annotated[str, typer.Option(help="Person or team responsible for the rule.")],
    reason: Annotated[str, typer.Option(help="Reason for suppressing the events.")],
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="When the rule ends, such as 2026-12-04T18:00:00Z. Maximum: 366 days from now.",
        ),
    ],
    provider: Annotated[str | None, typer.Option(help="Only incidents from this provider.")] = None,
    title: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Only incidents whose entire title matches this pattern. In the pattern, * "
            "matches any text.",
        ),
    ] = None,
    entity: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="Only incidents with an entity that has this value."),
    ] = None,
    cidr: Annotated[
        str | None, typer.Option(help="Only incidents with an IP address in this network.")
    ] = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Create a suppression rule.

    Specify at least one of --provider, --title, --entity and --cidr. The rule suppresses the events
    of incidents that match all the conditions that you specify.
    """
    conditions = {"provider": provider, "title": title, "entity": entity, "cidr": cidr}
    if not any(conditions.values()):
        raise OperatorError("use at least one of --provider, --title, --entity and --cidr")
    body = {"name": name, "owner": owner, "reason": reason, "ends_at": until, **conditions}
    path = admin_path("suppressions")
    record = run_on_api(url, token, lambda api: api.call("POST", path, body=body, options=_OPTIONS))
    print_record(record, _COLUMNS.every, as_json=as_json)


@app.command("list")
def list_all(
    *,
    active: Annotated[
        bool, typer.Option("--active", help="Only rules that have not ended.")
    ] = False,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List suppression rules with counts of suppressed events."""
    query = {"active": "true"} if active else {}
    path = admin_path("suppressions")
    records = run_on_api(
        url, token, lambda api: api.collect(path, "suppressions", limit=limit, **query)
    )
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def show(
    name: RuleName, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Show a suppression rule."""
    record = run_on_api(url, token, lambda api: api.call("GET", admin_path("suppressions", name)))
    print_record(record, _COLUMNS.every, as_json=as_json)


@app.command()
def end(
    name: RuleName, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """End a suppression rule now.

    Events that the rule has already suppressed are not delivered later.
    """
    path = admin_path("suppressions", name)
    record = run_on_api(url, token, lambda api: api.call("DELETE", path))
    print_record(record, _COLUMNS.every, as_json=as_json)
