"""Changes of incidents, for the plugins and destinations that follow them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from tocsin.events import emit_changes
from tocsin.identifiers import new_id
from tocsin.incidents.documents import represent_entities, represent_incident
from tocsin.incidents.storage.merge import IncidentChange
from tocsin.incidents.triage import UNTRIAGED, Triage, load_triage
from tocsin.model import ChangeType, Event, Json
from tocsin.store.tables import incident_entities, incidents

_FOLLOWED = ("severity", "status")
_PRESENT = ("title", "severity", "status", "provider", "url")
_e = incident_entities.c


def find_followed_members(change: IncidentChange) -> dict[str, Json]:
    """Return the followed members that a version changes, each with its value before and after."""
    if change.stored is None:
        return {}
    return {
        name: {"from": change.stored[name], "to": change.values[name]}
        for name in _FOLLOWED
        if change.stored[name] != change.values[name]
    }


def emit_version_changes(
    connection: Connection,
    changed: Iterable[IncidentChange],
    triage: Mapping[int, Triage],
    public_url: str,
    now: datetime,
) -> int:
    """Emit what versions from the SIEM change, in this transaction, and return their number."""
    found = [(change, members) for change in changed if (members := find_followed_members(change))]
    if not found:
        return 0

    def build() -> Iterable[Event]:
        for change, members in found:
            columns = {**(change.stored or {}), **change.values}
            entities = represent_entities(change.named_entities())
            shown = represent_incident(columns, entities, public_url=public_url)
            yield _build_event(shown, triage.get(columns["number"], UNTRIAGED), members, now)

    return len(emit_changes(connection, ChangeType.INCIDENT_CHANGED, build))


def emit_triage_change(
    connection: Connection,
    number: int,
    members: Mapping[str, Json],
    public_url: str,
    now: datetime,
) -> None:
    """Emit a changed disposition in this transaction, which has stored it."""
    if "disposition" not in members:
        return

    def build() -> Iterable[Event]:
        query = select(incidents).where(incidents.c.number == number)
        row = connection.execute(query).mappings().one()
        theirs = select(_e.kind, _e.value, _e.role).where(_e.incident_number == number)
        entities = represent_entities(
            sorted((kind, value, role) for kind, value, role in connection.execute(theirs))
        )
        shown = represent_incident(row, entities, public_url=public_url)
        triage = load_triage(connection, [number]).get(number, UNTRIAGED)
        yield _build_event(shown, triage, {"disposition": members["disposition"]}, now)

    emit_changes(connection, ChangeType.INCIDENT_CHANGED, build)


def _build_event(
    incident: Mapping[str, Any], triage: Triage, changes: Mapping[str, Json], now: datetime
) -> Event:
    return Event(
        id=new_id("evt"),
        event_type=ChangeType.INCIDENT_CHANGED,
        timestamp=now,
        data={
            "incident_number": incident["number"],
            **{name: incident[name] for name in _PRESENT},
            "disposition": triage["disposition"],
            "changes": dict(changes),
        },
        subject=f"incident:{incident['number']}",
        context={"incident": dict(incident), "triage": dict(triage)},
    )
