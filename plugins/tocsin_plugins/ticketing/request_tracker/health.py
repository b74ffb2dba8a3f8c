"""Health check of a Request Tracker queue."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any
from urllib.parse import quote

from tocsin import Health, Json, Misconfigured
from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_identifier,
    expect_object,
    expect_objects,
)
from tocsin_plugins.ticketing.request_tracker.fields import DATES, is_same_date

API = "/REST/2.0"
_MANDATORY = "(?#Mandatory)"  # RT's pattern for fields that must not be empty


async def find_problems(tracker: HttpTracker, given: Collection[str]) -> Health:
    """Report whether the queue accepts tickets with values in these custom fields."""
    name, queue = tracker.settings.project, await _queue(tracker)
    fields = _custom_field_names(queue)
    problems = _unknown_fields(tracker, fields, given)
    if not any(link.get("ref") == "create" for link in expect_objects(queue, "_hyperlinks")):
        problems.append(f"the right CreateTicket is missing on {name}")
    empty = [field for name, field in fields.items() if name not in given]
    problems += [
        f"the custom field {field} is mandatory: set fields.{field}"
        async for field in _mandatory_fields(tracker, empty)
    ]
    return Health(detail=f"{name} accepts tickets", problems=tuple(problems))


async def check_fields(tracker: HttpTracker, given: Collection[str]) -> None:
    """Raise `Misconfigured` unless the queue has these custom fields.

    RT silently ignores unknown fields of new tickets.
    """
    if unknown := _unknown_fields(tracker, _custom_field_names(await _queue(tracker)), given):
        raise Misconfigured("; ".join(unknown))


async def check_key(tracker: HttpTracker, identifier: str, field: str, mark: str) -> None:
    """Raise `Misconfigured` unless a new ticket has its key in a custom field.

    RT silently ignores the field if the token does not have the right to set it.
    """
    ticket = expect_object(await tracker.ask("GET", f"{API}/ticket/{identifier}"))
    values = [
        custom.get("values")
        for custom in expect_objects(ticket, "CustomFields")
        if custom.get("name") == field
    ]
    if [mark] not in values:
        right = "the right ModifyCustomField is missing"
        raise Misconfigured(f"ticket {identifier} has no value in {field}: {right}")


async def check_dates(
    tracker: HttpTracker, identifier: str, own: Mapping[str, Json], messages: str = ""
) -> None:
    """Raise `Misconfigured`, with RT's messages, unless a ticket has these dates.

    RT returns 200 or 201 even if it did not set a date, or set a different one.
    """
    dates = {name: value for name, value in own.items() if name in DATES}
    if not dates:
        return
    ticket = expect_object(await tracker.ask("GET", f"{API}/ticket/{identifier}"))
    for name, wanted in dates.items():
        if not is_same_date(ticket.get(name), str(wanted)):
            found = f"ticket {identifier} has {name} {ticket.get(name)!r} instead of {wanted} UTC"
            hint = messages or "grant the right ModifyTicket, or correct the field"
            raise Misconfigured(f"{found}: {hint}")


async def _queue(tracker: HttpTracker) -> dict[str, Any]:
    name = tracker.settings.project
    key = await _find_queue(tracker, name) if "/" in name else quote(name, safe="")
    return expect_object(await tracker.ask("GET", f"{API}/queue/{key}"))


async def _find_queue(tracker: HttpTracker, name: str) -> str:
    """Return the ID of a queue whose name RT's server would split at each slash."""
    wanted = {"query": json.dumps([{"field": "Name", "value": name}])}
    found = expect_object(await tracker.ask("GET", f"{API}/queues", query=wanted))
    queues = expect_objects(found, "items")
    if not queues:
        raise Misconfigured(
            f"project: the queue {name} does not exist, or the right SeeQueue is missing"
        )
    return expect_identifier(queues[0])


def _custom_field_names(queue: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {str(field.get("name")): field for field in expect_objects(queue, "TicketCustomFields")}


def _unknown_fields(
    tracker: HttpTracker, fields: Mapping[str, Any], given: Collection[str]
) -> list[str]:
    where = f"does not apply to {tracker.settings.project}, or the right SeeCustomField is missing"
    return [f"the custom field {key} {where}" for key in sorted({*given} - fields.keys())]


async def _mandatory_fields(
    tracker: HttpTracker, fields: Collection[dict[str, Any]]
) -> AsyncIterator[str]:
    for field in fields:
        shown = expect_object(
            await tracker.ask("GET", f"{API}/customfield/{expect_identifier(field)}")
        )
        if _MANDATORY in str(shown.get("Pattern")):
            yield str(field.get("name"))
