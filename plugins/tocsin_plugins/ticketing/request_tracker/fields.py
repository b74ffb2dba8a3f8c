"""What a ticket of RT is to have: its own fields, and custom ones."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin import Json, Ticket

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
