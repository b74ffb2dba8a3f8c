"""Ticket fields, comments and TicketSQL queries of Request Tracker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from tocsin import Json, Misconfigured, Ticket
from tocsin_plugins.ticketing.markup import render_comment

RESERVED = frozenset(
    {"queue", "subject", "content", "contenttype", "priority", "status", "owner", "requestor"}
    | {"customfields", "attachments"}
)
"""Fields that Tocsin sets itself."""
# All other fields are custom fields
_OWN = frozenset({"AdminCc", "Cc", "Due", "FinalPriority", "RefersTo", "SLA", "Starts"})
DATES = frozenset({"Due", "Starts"})
_DATE = "%Y-%m-%d %H:%M:%S"
"""Format in which RT reads dates, in UTC; others become 1970-01-01 (RT::Date, `Set`)."""
_TITLE = 150  # of the 255 characters of a transaction's subject
FIELD_NAME = r"^[^{}'\"\\]+$"
"""Names of custom fields that are valid in a query."""


def own_fields(ticket: Ticket) -> dict[str, Json]:
    """Return the ticket's own fields; a priority is a number or a name.

    Raises `Misconfigured` for dates that cannot be read.
    """
    own = {
        name: format_date(name, value) if name in DATES else value
        for name, value in ticket.fields.items()
        if name in _OWN
    }
    priority = ticket.priority
    if priority is None:
        return own
    return {"Priority": int(priority) if priority.isdigit() else priority, **own}


def format_date(name: str, value: Json) -> str:
    """Return a date in UTC, as RT reads it; raises `Misconfigured` if the value is not a date.

    A date without a time means midnight; a number means seconds since 1970.
    """
    moment = parse_date(value)
    if moment is None:
        raise Misconfigured(
            f"fields.{name}: found {value!r:.100}; use a date such as '2026-11-30', or a time "
            "such as '2026-11-30T12:00:00Z'"
        )
    return moment.strftime(_DATE)


def parse_date(value: Json) -> datetime | None:
    """Return the time in UTC that a date means; None if the value is not a date."""
    try:
        match value:
            case bool():
                return None
            case int() | float():
                return datetime.fromtimestamp(value, UTC)
            case str():
                moment = datetime.fromisoformat(value.strip())
                return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def is_same_date(shown: Json, wanted: str) -> bool:
    """Return whether RT shows a date that was set to `wanted`; RT does not show fractions."""
    return shown is not None and parse_date(shown) == parse_date(wanted)


def custom_fields(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the custom fields among the operator's fields."""
    return {name: value for name, value in fields.items() if name not in _OWN}


def changed_fields(changes: Mapping[str, Json], ticket: Mapping[str, Json]) -> dict[str, Json]:
    """Return the changes that differ from a ticket's current values."""
    wanted = {
        name: value
        for name, value in changes.items()
        if not (
            is_same_date(ticket.get(name), str(value))
            if name in DATES
            else str(ticket.get(name)) == str(value)
        )
    }
    match wanted, ticket:
        case {"CustomFields": {**given}}, {"CustomFields": [*shown]}:
            now = {field["name"]: field["values"] for field in shown if isinstance(field, dict)}
            if all(now.get(name) == _values(value) for name, value in given.items()):
                del wanted["CustomFields"]
    return wanted


def _values(given: Json) -> list[str]:
    return [str(item) for item in (given if isinstance(given, list) else [given])]


def build_comment(markdown: str) -> dict[str, Json]:
    """Return a comment; its subject consists of the first and the last line of the text.

    The last line names the event, and RT's history shows only subjects, not texts.
    """
    content = render_comment(markdown)
    lines = [line for line in content.splitlines() if line] or ["Tocsin"]
    named = f" ({lines[-1]})" if len(lines) > 1 else ""
    subject = f"{lines[0][:_TITLE]}{named}"
    return {"Subject": subject, "Content": content, "ContentType": "text/plain"}


def tickets_query(mark: str, field: str | None) -> str:
    """Return a query for tickets with a mark in a custom field or in the subject."""
    return (
        f"'CF.{{{field}}}' = {quote_value(mark)}" if field else f"Subject LIKE {quote_value(mark)}"
    )


def quote_value(text: str) -> str:
    """Return a quoted TicketSQL text, escaped with backslashes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
