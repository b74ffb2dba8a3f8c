"""Changes of the triage of incidents, with their history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from tocsin.clock import isoformat
from tocsin.errors import InvalidInputError
from tocsin.incidents.documents import refresh_documents
from tocsin.incidents.storage import emit_triage_change, lock_incidents
from tocsin.incidents.triage import (
    COLUMNS,
    MEMBERS,
    UNTRIAGED,
    LabelKind,
    Triage,
    load_triage,
    sort_labels,
)
from tocsin.model import DispositionSource, IncidentDisposition, Json
from tocsin.store import INCIDENT_CHANGE, allot_numbers, build_insert, is_in
from tocsin.store.tables import (
    incident_changes,
    incident_labels,
    incident_triage,
    incidents,
)

MAX_LABELS = 50
"""How many tags, how many links and how many watchers an incident can have."""
MAX_HISTORY = 200
"""How many changes an incident's history contains, newest first."""


_DISPOSITION = ("disposition", "disposition_reason", "disposition_source", "disposition_by")


class _Keep(Enum):
    KEEP = "keep"


KEEP: Final = _Keep.KEEP
"""Leaves a member as it is."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change."""

    name: str
    actor: str
    """As in the audit log."""
    source: DispositionSource


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageUpdate:
    """Changes to the triage of an incident."""

    assignee: str | _Keep | None = KEEP
    acknowledged: bool | _Keep = KEEP
    disposition: IncidentDisposition | _Keep | None = KEEP
    reason: str | _Keep | None = KEEP
    source: DispositionSource | None = None
    """Origin of the disposition, if it is not the author's own."""
    added: Mapping[LabelKind, Sequence[str]] = field(default_factory=dict)
    removed: Mapping[LabelKind, Sequence[str]] = field(default_factory=dict)


def lock_incident(connection: Connection, number: int) -> int | None:
    """Return the `change` of an incident, None for an unknown number.

    Until the transaction ends, nobody else stores any incident.
    """
    lock_incidents(connection)
    return connection.scalar(select(incidents.c.change).where(incidents.c.number == number))


def update_triage(
    connection: Connection,
    number: int,
    change: TriageUpdate,
    author: Author,
    now: datetime,
    *,
    public_url: str,
) -> dict[str, Json]:
    """Update the triage of a locked incident, and return the changed members with both values.

    A link is stored for both incidents. Raises InvalidInputError.
    """
    linked = [
        int(text)
        for labels in (change.added, change.removed)
        for text in labels.get(LabelKind.LINK, ())
        if int(text) != number
    ]
    _require_linkable(connection, number, [int(n) for n in change.added.get(LabelKind.LINK, ())])
    before = load_triage(connection, [number, *linked])
    stored = _select_columns(before.get(number, UNTRIAGED))
    moments = {}
    if change.assignee is not KEEP:
        stored["assignee"] = change.assignee
    if change.acknowledged is not KEEP and change.acknowledged != bool(stored["acknowledged_by"]):
        stored["acknowledged_by"] = author.name if change.acknowledged else None
        moments["acknowledged_at"] = now if change.acknowledged else None
    moments |= _update_disposition(stored, change, author, now)
    after = {number: stored | _update_labels(before.get(number, UNTRIAGED), change)}
    for other in linked:
        theirs = before.get(other, UNTRIAGED)
        back = {LabelKind.LINK: [str(number)]}
        is_added = str(other) in change.added.get(LabelKind.LINK, ())
        mirrored = TriageUpdate(added=back) if is_added else TriageUpdate(removed=back)
        after[other] = _select_columns(theirs) | _update_labels(theirs, mirrored)
    changed = {
        each: members
        for each, triage in after.items()
        if (members := _compare(before.get(each, UNTRIAGED), triage))
    }
    for each in changed:
        store_triage(connection, each, after[each], moments if each == number else {})
    record_changes(connection, changed, author, now)
    emit_triage_change(connection, number, changed.get(number, {}), public_url, now)
    return changed.get(number, {})


def _select_columns(triage: Triage) -> dict[str, Any]:
    return {name: triage[name] for name in COLUMNS if not name.endswith("_at")}


def _update_disposition(
    stored: dict[str, Any], change: TriageUpdate, author: Author, now: datetime
) -> dict[str, datetime | None]:
    """Update the disposition in `stored`, and return its time if that changes."""
    if change.disposition is KEEP and change.reason is KEEP and change.source is None:
        return {}
    before = (stored["disposition"], stored["disposition_reason"], stored["disposition_source"])
    disposition = stored["disposition"] if change.disposition is KEEP else change.disposition
    if disposition is None:
        if change.disposition is KEEP or change.reason not in (KEEP, None) or change.source:
            raise InvalidInputError(
                "A reason or a source requires a disposition; also send `disposition`."
            )
        stored |= dict.fromkeys(_DISPOSITION)
        return {"disposition_at": None}
    is_same = disposition == stored["disposition"]
    kept = stored["disposition_reason"] if is_same else None
    source = change.source or (stored["disposition_source"] if is_same else author.source)
    after = (str(disposition), kept if change.reason is KEEP else change.reason, str(source))
    if after == before:
        return {}
    stored |= dict(zip(_DISPOSITION, (*after, author.name), strict=True))
    return {"disposition_at": now}


def _update_labels(triage: Triage, change: TriageUpdate) -> dict[str, list[Any]]:
    """Return the labels after a change; raises InvalidInputError if there are too many."""
    updated: dict[str, list[Any]] = {}
    for kind, member in MEMBERS.items():
        known = set(map(str, triage[member])) - set(change.removed.get(kind, ()))
        added = known | set(change.added.get(kind, ()))
        if len(added) > max(MAX_LABELS, len(known)):
            raise InvalidInputError(
                f"An incident can have at most {MAX_LABELS} {member.replace('_', ' ')}; with this "
                f"change, it would have {len(added)}. Remove some first."
            )
        updated[member] = sort_labels(kind, added)
    return updated


def _require_linkable(connection: Connection, number: int, others: Sequence[int]) -> None:
    if number in others:
        raise InvalidInputError(f"Incident {number} cannot be linked to itself.")
    query = select(incidents.c.number).where(is_in(incidents.c.number, "numbers"))
    found = set(connection.scalars(query, {"numbers": others})) if others else set()
    if missing := sorted(set(others) - found):
        raise InvalidInputError(f"There is no incident {', '.join(map(str, missing))}.")


def _compare(before: Triage, after: Triage) -> dict[str, Json]:
    """Return the members that differ, each with its value before and after."""
    changed: dict[str, Json] = {}
    for name, value in after.items():
        known = list(before[name]) if name in MEMBERS.values() else before[name]
        if known != value:
            changed[name] = {"from": known, "to": value}
    return changed


def store_triage(
    connection: Connection, number: int, triage: Triage, moments: Mapping[str, datetime | None]
) -> None:
    """Store the triage of an incident; times that are not in `moments` stay as they are."""
    columns = _select_columns(triage) | dict(moments)
    statement = build_insert(connection, incident_triage)
    statement = statement.values(incident_number=number, **columns)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["incident_number"], set_=columns)
    )
    theirs = incident_labels.c.incident_number == number
    connection.execute(delete(incident_labels).where(theirs))
    rows = [
        {"incident_number": number, "kind": kind.value, "value": str(value)}
        for kind, member in MEMBERS.items()
        for value in triage[member]
    ]
    if rows:
        connection.execute(insert(incident_labels), rows)


def record_changes(
    connection: Connection,
    changed: Mapping[int, Mapping[str, Json]],
    author: Author,
    now: datetime,
) -> None:
    """Give changed incidents new `change` numbers, and record the changes."""
    if not changed:
        return
    rows = [
        {
            "incident_number": number,
            "change": change,
            "at": now,
            "by": author.name,
            "actor": author.actor,
            "members": members,
        }
        for (number, members), change in zip(
            sorted(changed.items()),
            allot_numbers(connection, INCIDENT_CHANGE, len(changed)),
            strict=True,
        )
    ]
    for row in rows:
        is_it = incidents.c.number == row["incident_number"]
        values = {"change": row["change"], "updated_at": now}
        connection.execute(update(incidents).where(is_it).values(values))
    connection.execute(insert(incident_changes), rows)
    refresh_documents(connection, list(changed))


def load_history(connection: Connection, number: int) -> list[dict[str, Json]]:
    """Return the latest changes of an incident's triage, the oldest first."""
    c = incident_changes.c
    query = select(c.at, c.by, c.actor, c.members).where(c.incident_number == number)
    rows = connection.execute(query.order_by(c.change.desc()).limit(MAX_HISTORY)).all()
    return [
        {
            "at": isoformat(at),
            "by": by,
            "actor": actor,
            "members": [
                {"name": name, "from": members[name]["from"], "to": members[name]["to"]}
                for name in sorted(members)
            ],
        }
        for at, by, actor, members in reversed(rows)
    ]


def describe_change(member: Mapping[str, Any]) -> str:
    """Return the values of a changed member before and after, such as `none to ana`."""
    return f"{_describe_value(member['from'])} to {_describe_value(member['to'])}"


def _describe_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
