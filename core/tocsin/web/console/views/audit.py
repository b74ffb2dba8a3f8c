"""Audit log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import orjson

from tocsin.credentials import ConsoleRole
from tocsin.web.console.page_request import (
    PageRequest,
    select_period,
    select_query,
)
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.routes.audit import list_audit_entries

_PATH = "/admin/audit"
_TEXTS = ("actor", "action", "target")
_KNOWN = sorted(
    {endpoint.action for endpoint in ENDPOINTS if endpoint.action}
    | {"console.sign-in", "console.session-end", "passkey.create", "passkey.rename"}
    | {"passkey.refuse", "refused"}
)
_PLACES = {
    "key": "/admin/api-keys/{}",
    "client": "/admin/api-clients/{}",
    "person": "/admin/people/{}",
    "destination": "/destinations/{}",
    "schedule": "/schedules/{}",
    "delivery": "/deliveries/{}",
}


async def show_audit(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the audit log."""
    query = select_query(request, *_TEXTS) | select_period(request)
    cursor = select_query(request, "cursor")
    found = await request.ask(list_audit_entries, {}, **query, **cursor)
    entries = [
        {
            **entry,
            "place": link_to_target(entry["target"]),
            "details": list(format_details(entry["details"])),
        }
        for entry in found["entries"]
    ]
    return {
        "found": {**found, "entries": entries},
        "query": query,
        "actions": _KNOWN,
    }


def link_to_target(target: str | None) -> str | None:
    """Return the page of an audit target, None if it has none."""
    kind, _, name = (target or "").partition(":")
    return _PLACES[kind].format(quote(name, safe="")) if kind in _PLACES and name else None


def format_details(details: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and formatted values of an entry's details."""
    for name, value in details.items():
        yield name.replace("_", " "), _format_value(value)


def _format_value(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case [*parts] if all(isinstance(part, str | int) for part in parts):
            return ", ".join(map(str, parts)) or "none"
    return orjson.dumps(value).decode()


PAGES = (
    ConsolePage(
        path=_PATH,
        view=show_audit,
        template="audit.html.j2",
        section="audit",
        role=ConsoleRole.AUDITOR,
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
