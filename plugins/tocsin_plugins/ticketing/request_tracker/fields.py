"""Ticket fields, comments and TicketSQL queries of Request Tracker."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin import Json, Ticket
from tocsin_plugins.ticketing.markup.comments import render_comment

RESERVED = frozenset(
    {"queue", "subject", "content", "contenttype", "priority", "status", "owner", "requestor"}
    | {"customfields", "attachments"}
)
"""What Tocsin sets by itself."""
# Every other of the operator's is a custom field
_OWN = frozenset({"AdminCc", "Cc", "Due", "FinalPriority", "RefersTo", "SLA", "Starts"})


def own_fields(ticket: Ticket) -> dict[str, Json]:
    """Return the fields of the ticket itself; a priority is a number, or the name of one."""
    own = {name: it for name, it in ticket.fields.items() if name in _OWN}
    priority = ticket.priority
    if priority is None:
        return own
    return {"Priority": int(priority) if priority.isdigit() else priority, **own}


def custom_fields(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return those of the operator's fields that are custom ones."""
    return {name: it for name, it in fields.items() if name not in _OWN}


def changed_fields(changes: Mapping[str, Json], ticket: Mapping[str, Json]) -> dict[str, Json]:
    """Return those of some changes that a ticket does not have already."""
    wanted = {name: it for name, it in changes.items() if str(ticket.get(name)) != str(it)}
    match wanted, ticket:
        case {"CustomFields": {**given}}, {"CustomFields": [*shown]}:
            now = {it["name"]: it["values"] for it in shown if isinstance(it, dict)}
            if all(now.get(name) == _values(it) for name, it in given.items()):
                del wanted["CustomFields"]
    return wanted


def _values(given: Json) -> list[str]:
    return [str(it) for it in (given if isinstance(given, list) else [given])]


_TITLE = 150  # characters of the 255 that a transaction remembers of a subject


def build_comment(markdown: str) -> dict[str, Json]:
    """Return a comment; its subject is the first line of the text, with the last.

    The last one names the event, and a history shows subjects but no texts.
    """
    content = render_comment(markdown)
    lines = [line for line in content.splitlines() if line] or ["Tocsin"]
    named = f" ({lines[-1]})" if len(lines) > 1 else ""
    subject = f"{lines[0][:_TITLE]}{named}"
    return {"Subject": subject, "Content": content, "ContentType": "text/plain"}


FIELD_NAME = r"^[^{}'\"\\]+$"
"""The names of custom fields that can stand in a query."""


def tickets_query(mark: str, field: str | None) -> str:
    """Return the query for the tickets with a mark in a custom field, or in their subject."""
    return (
        f"'CF.{{{field}}}' = {quote_value(mark)}" if field else f"Subject LIKE {quote_value(mark)}"
    )


def quote_value(text: str) -> str:
    """Return a text as it stands in TicketSQL: a backslash takes away what follows its meaning."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
