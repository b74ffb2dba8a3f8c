"""`tocsin trace`: the whole chain of one incident."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import orjson
import typer

from tocsin import accounting
from tocsin.cli.existing import run_on_database
from tocsin.cli.output import AsJson, print_records
from tocsin.errors import OperatorError
from tocsin.settings import load_settings

_DEPTH = {"incident": 0, "coverage": 1, "alert": 1, "event": 1, "delivery": 2, "attempt": 3}


def trace(
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=1, max=10**18 - 1)],
    as_json: AsJson = False,
) -> None:
    """Show what brought an incident, what was said of it, and each attempt to deliver that."""
    found = run_on_database(
        load_settings(), lambda database: database.read(accounting.trace, number)
    )
    if found is None:
        raise OperatorError(f"there is no incident {number}")
    if as_json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    elif sys.stdout.isatty():
        _print_tree(found)
    else:
        print_records(list(_records(found)), as_json=False)


def _print_tree(found: dict[str, Any]) -> None:
    for record in _records(found):
        words = [str(value) for value in record.values() if value is not None]
        line = "  ".join(words).translate(_UNPRINTABLE)
        print("  " * _DEPTH[record["what"]] + line)


# What a SIEM or a receiver wrote does not get to steer the terminal
_UNPRINTABLE = dict.fromkeys([*range(32), *range(127, 160)], " ")


def _records(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    incident, coverage, alert = found["incident"], found["coverage"], found["alert"]
    named = f"{incident['provider']} {incident['external_id']}, {incident['severity']}"
    detail = f"{named}: {incident['title']}"
    yield _record("incident", incident["number"], "created", incident["created_at"], detail)
    source = f"{coverage['provider']}/{coverage['stream']} {coverage['source']}"
    extent = f"{coverage['from']} to {coverage['to']}"
    detail = f"{extent}: {coverage['reason']}" if coverage["reason"] else extent
    yield _record("coverage", source, coverage["outcome"], coverage["finished_at"], detail)
    yield _record("alert", None, alert["outcome"], None, alert["detail"])
    for event in found["events"]:
        kind = event["event_type"]
        yield _record("event", event["id"], event["outcome"], event["timestamp"], kind)
        for delivery in event["deliveries"]:
            yield from _delivery(delivery)


def _delivery(delivery: dict[str, Any]) -> Iterator[dict[str, Any]]:
    name = f"{delivery['destination']} {delivery['id']}"
    named = " ".join(filter(None, (delivery["remote_id"], delivery["remote_url"])))
    remote = f"there it is {named}" if named else None
    due = f"tried next at {delivery['due_at']}" if delivery["due_at"] else None
    detail = "; ".join(filter(None, (delivery["reason"], due, remote))) or None
    yield _record("delivery", name, delivery["state"], delivery["finished_at"], detail)
    for attempt in delivery["attempts"]:
        told = (attempt["status"], attempt["reason"], f"{attempt['duration_ms']} ms")
        detail = ", ".join(str(word) for word in told if word is not None)
        yield _record(
            "attempt", attempt["number"], attempt["outcome"], attempt["started_at"], detail
        )


def _record(
    what: str, name: object, outcome: str, at: str | None, detail: str | None
) -> dict[str, Any]:
    return {"what": what, "name": name, "outcome": outcome, "at": at, "detail": detail}
