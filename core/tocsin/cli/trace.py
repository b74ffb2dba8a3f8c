"""`tocsin trace`: history of an incident."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from sqlalchemy import Connection

from tocsin import accounting
from tocsin.cli.database import run_on_database
from tocsin.cli.emergency_stops import describe_past_stop
from tocsin.cli.output import AsJson, Columns, Wide, print_json, print_tree
from tocsin.errors import OperatorError
from tocsin.incidents import RemovedIncident, describe_change, find_removed
from tocsin.settings import load_settings

_COLUMNS = Columns(("what", "name", "outcome", "at", "detail"))
TraceLine = tuple[int, dict[str, Any]]
"""Depth in the tree, and the record."""


def trace(
    number: Annotated[
        int, typer.Argument(metavar="NUMBER", min=1, max=10**18 - 1, help="Number of the incident.")
    ],
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Trace an incident from the SIEM to its deliveries.

    Shows when and where Tocsin read the incident, whether the incident caused an alert, and which
    emergency stops delayed it. Also lists its events, changes, deliveries, attempts, tickets,
    triage, investigations and write-backs.
    """
    found, removed = run_on_database(load_settings(), lambda database: database.read(_load, number))
    if removed is not None:
        message = (
            "retention removed incident {number}, which last changed on {date}; alert: {outcome}"
        )
        raise OperatorError(message.format(**removed.describe()))
    if found is None:
        raise OperatorError(f"no incident with number {number}")
    if as_json:
        print_json(found)
    else:
        print_tree(list(_lines(found)), _COLUMNS, wide=wide)


def _load(
    connection: Connection, number: int
) -> tuple[dict[str, Any] | None, RemovedIncident | None]:
    return accounting.trace_incident(connection, number), find_removed(connection, number)


def _lines(found: dict[str, Any]) -> Iterator[TraceLine]:
    incident, coverage, alert = found["incident"], found["coverage"], found["alert"]
    named = f"{incident['provider']} {incident['external_id']}, {incident['severity']}"
    detail = f"{named}: {incident['title']}"
    yield 0, _record("incident", incident["number"], "created", incident["created_at"], detail)
    source = f"{coverage['provider']}/{coverage['stream']} {coverage['source']}"
    extent = f"{coverage['from']} to {coverage['to']}"
    detail = f"{extent}: {coverage['reason']}" if coverage["reason"] else extent
    yield 1, _record("coverage", source, coverage["outcome"], coverage["finished_at"], detail)
    yield 1, _record("alert", None, alert["outcome"], None, alert["detail"])
    for stop in found["stops"]:
        name = f"{stop['kind']}:{stop['name']}"
        yield 1, _record("stop", name, "stopped", stop["since"], describe_past_stop(stop))
    for event in found["events"]:
        yield from _event(event, 1)
    for outcome, count in found["earlier_changes"].items():
        if count:
            yield 1, _record("earlier changes", count, outcome, None, None)
    for change in found["changes"]:
        yield from _change(change, 1)
    for remote in found["remote_objects"]:
        yield 1, _remote_object(remote)
    if closure := found["siem_closure"]:
        at, source = closure["finished_at"], f"{closure['destination']} {closure['ticket']}"
        yield 1, _record("SIEM closure", source, closure["state"], at, closure["reason"])
    for each in found["triage"]:
        yield from _triage(each, 1)
    for session in found["investigations"]:
        yield from _investigation(session, 1)


def _triage(change: dict[str, Any], depth: int) -> Iterator[TraceLine]:
    """Yield a line for each member of a triage change."""
    for member in change["members"]:
        detail = f"{describe_change(member)}, by {change['by']} ({change['actor']})"
        yield depth, _record("triage", member["name"], "changed", change["at"], detail)


def _investigation(session: dict[str, Any], depth: int) -> Iterator[TraceLine]:
    schedule = session["schedule_id"]
    who = f"schedule {schedule}" if schedule else session["created_by"]
    asked = f"{who}: {session['query']}"
    detail = "; ".join(filter(None, (asked, session["error"] or session["title"])))
    outcome = session["verdict"] or session["status"]
    yield depth, _record("investigation", session["id"], outcome, session["created_at"], detail)
    for comment in session["write_backs"]:
        at, name = comment["finished_at"], f"run {comment['run']}"
        yield depth + 1, _record("write-back", name, comment["state"], at, comment["reason"])
    for event in session["events"]:
        yield from _event(event, depth + 1)
    for change in session["changes"]:
        yield from _change(change, depth + 1)


def _change(change: dict[str, Any], depth: int) -> Iterator[TraceLine]:
    members = [f"{member['name']} {describe_change(member)}" for member in change["members"]]
    for each in change["objects"]:
        done = "closed" if each["closed"] else "remote ticket:"
        members.append(f"{done} {each['destination']} {each['id']}")
    return _event(change, depth, "change", members)


def _event(
    event: dict[str, Any], depth: int, what: str = "event", members: Sequence[str] = ()
) -> Iterator[TraceLine]:
    rule = event["suppressed_by"] and f"suppressed by {event['suppressed_by']}"
    detail = "; ".join(filter(None, (event["event_type"], *members, event["reason"], rule)))
    yield depth, _record(what, event["id"], event["outcome"], event["timestamp"], detail)
    for delivery in event["deliveries"]:
        yield from _delivery(delivery, depth + 1)


def _delivery(delivery: dict[str, Any], depth: int) -> Iterator[TraceLine]:
    name = f"{delivery['destination']} {delivery['id']}"
    named = " ".join(filter(None, (delivery["remote_id"], delivery["remote_url"])))
    remote = f"remote ticket: {named}" if named else None
    due = f"next attempt at {delivery['due_at']}" if delivery["due_at"] else None
    detail = "; ".join(filter(None, (delivery["reason"], due, remote))) or None
    yield depth, _record("delivery", name, delivery["state"], delivery["finished_at"], detail)
    for attempt in delivery["attempts"]:
        parts = (attempt["status"], attempt["reason"], f"{attempt['duration_ms']} ms")
        detail = ", ".join(str(word) for word in parts if word is not None)
        name, outcome = attempt["number"], attempt["outcome"]
        yield depth + 1, _record("attempt", name, outcome, attempt["started_at"], detail)


def _remote_object(remote: dict[str, Any]) -> dict[str, Any]:
    status = " / ".join(filter(None, (remote["status"], remote["resolution"])))
    parts = (
        f"status since {remote['status_changed_at']}",
        remote["mismatch"],
        remote["remote_url"],
    )
    name = f"{remote['destination']} {remote['remote_id']}"
    detail = ", ".join(filter(None, parts))
    return _record("remote object", name, status or "missing", remote["status_read_at"], detail)


def _record(
    what: str, name: object, outcome: str, at: str | None, detail: str | None
) -> dict[str, Any]:
    return {"what": what, "name": name, "outcome": outcome, "at": at, "detail": detail}
