"""Storage of received incidents in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, bindparam, insert, select, update

from tocsin.events import emit_events
from tocsin.incidents.coverage import (
    ReadCounts,
    StreamKey,
    advance_position,
    quarantine_rejected,
    record_coverage,
)
from tocsin.incidents.documents import render_document, store_documents
from tocsin.incidents.storage.alerts import IncidentPolicy, judge_alerts
from tocsin.incidents.storage.merge import (
    IDENTITY,
    EntityRole,
    IncidentChange,
    compare_versions,
    fold_versions,
)
from tocsin.incidents.storage.normalize import reject_invalid
from tocsin.incidents.storage.refreshes import schedule_refreshes
from tocsin.incidents.storage.removed import recall_removed
from tocsin.incidents.triage import Triage, load_triage
from tocsin.model import Alert, Entity, EntityKind, Incident, Page, Received
from tocsin.store import (
    INCIDENT_CHANGE,
    INCIDENT_NUMBER,
    BulkStatement,
    allot_numbers,
    is_in,
    load_redactor,
)
from tocsin.store.tables import (
    incident_alerts,
    incident_entities,
    incident_techniques,
    incidents,
)

_CHUNK = 50


@dataclass(frozen=True, slots=True)
class StoreResult:
    """Result of storing received incidents."""

    counts: ReadCounts
    events: int


def store_page(
    connection: Connection,
    key: StreamKey,
    page: Page,
    *,
    revision: int,
    policy: IncidentPolicy,
    now: datetime,
) -> StoreResult:
    """Store a page that was read at `revision` of its stream's position, and return the result.

    Raises `StalePosition` where another node has advanced the position since.
    """
    read = (span for span in page.covered if span.lost is None and span.passed_over is None)
    ends = (span.end for span in read if isinstance(span.end, datetime) and span.end != span.start)
    until = max(ends, default=None)
    advance_position(connection, key, revision, page.next_position, covered_until=until, now=now)
    return store_received(connection, key, page, policy=policy, now=now)


def store_received(
    connection: Connection,
    key: StreamKey,
    received: Received,
    *,
    policy: IncidentPolicy,
    now: datetime,
    past: bool = False,
) -> StoreResult:
    """Store incidents from a SIEM, and return the result.

    Erased values are replaced first. Invalid incidents are quarantined, like records that cannot be
    read. Where `received` does not say what it covers, it covers this moment. `past` marks
    incidents from a backfill.
    """
    if (redactor := load_redactor(connection)) is not None:
        received = redactor.redact(received)
    received = reject_invalid(key.stream, received)
    changes = _load_changes(connection, key.provider, fold_versions(received.incidents))
    new = [change for change in changes if change.stored is None]
    changed = [change for change in changes if change.is_changed]
    count = len(received.rejected) + received.further_rejected
    counts = ReadCounts(received.records, len(new), len(changed), count)
    row = record_coverage(connection, key, received.covered, counts, now, past=past)
    recall_removed(connection, key.provider, new)
    _assign_numbers(connection, new, changed, {"provider": key.provider, "coverage_id": row}, now)
    events = judge_alerts([*new, *changed], policy, now)
    _insert(connection, incidents, [change.values for change in new])
    _update(connection, [change.values for change in changed])
    _insert(connection, incident_entities, _build_rows(new + changed, _entity_rows))
    _update_roles(connection, changed)
    # Read after the sequence was locked by allotting: nobody changes the triage until the commit
    numbers = [change.values["number"] for change in changed]
    triage = load_triage(connection, numbers) if numbers else {}
    store_documents(connection, (_render_change(change, triage) for change in new + changed))
    _insert(connection, incident_techniques, _build_rows(new + changed, _technique_rows))
    _insert(connection, incident_alerts, _build_rows(new + changed, _alert_rows))
    further = received.further_rejected
    quarantine_rejected(connection, key, received.rejected, now, further=further)
    if after := policy.refresh_after:
        is_young = _is_younger_than(after[-1], now)
        young = [change.incident.external_id for change in new if not past or is_young(change)]
        optional = {one.external_id for one in received.incidents if one.only_if_stored}
        left_out = optional - {change.incident.external_id for change in changes}
        incomplete = (name for name in received.incomplete if name not in left_out)
        names = list(dict.fromkeys((*young, *incomplete)))
        schedule_refreshes(connection, key.provider, names, after[0], now)
    emit_events(connection, events)
    return StoreResult(counts, len(events))


def _load_changes(
    connection: Connection, provider: str, page: Mapping[str, Incident]
) -> list[IncidentChange]:
    """Return the change of each incident, with the parts that are not stored yet.

    A new incident that may only change a stored one has none.
    """
    stored = _load_stored(connection, provider, list(page))
    entities = _load_entities(connection, [row["number"] for row in stored.values()])
    alerts = _load_alerts(
        connection, {row["number"]: page[name].alerts for name, row in stored.items()}
    )
    changes = []
    for external_id, incident in page.items():
        row = stored.get(external_id)
        if row is None and incident.only_if_stored:
            continue
        number = row["number"] if row else None
        known = entities.get(number, {}), alerts.get(number, set())
        changes.append(compare_versions(incident, row, *known))
    return changes


_STORED = select(incidents).where(
    incidents.c.provider == bindparam("provider"), is_in(incidents.c.external_id, "external_ids")
)
_ENTITIES = select(
    incident_entities.c.incident_number,
    incident_entities.c.kind,
    incident_entities.c.value,
    incident_entities.c.role,
).where(is_in(incident_entities.c.incident_number, "numbers"))
_ALERTS = select(incident_alerts.c.incident_number, incident_alerts.c.external_id).where(
    is_in(incident_alerts.c.incident_number, "numbers"),
    is_in(incident_alerts.c.external_id, "external_ids"),
)


def _load_stored(
    connection: Connection, provider: str, external_ids: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    asked = {"provider": provider, "external_ids": external_ids}
    rows: dict[str, Mapping[str, Any]] = {}
    rows |= {row["external_id"]: row for row in connection.execute(_STORED, asked).mappings()}
    return rows


def _load_entities(
    connection: Connection, numbers: Sequence[int]
) -> dict[int | None, dict[Entity, EntityRole | None]]:
    known: dict[int | None, dict[Entity, EntityRole | None]] = {}
    if not numbers:
        return known
    for number, kind, value, role in connection.execute(_ENTITIES, {"numbers": numbers}):
        entity = Entity(EntityKind(kind), value)
        known.setdefault(number, {})[entity] = EntityRole(role) if role else None
    return known


def _load_alerts(
    connection: Connection, mentioned: Mapping[int, Sequence[Alert]]
) -> dict[int | None, set[str]]:
    """Return the IDs of the mentioned alerts that are stored, by incident number."""
    known: dict[int | None, set[str]] = {}
    # The databases combine each number with each identifier, so the lists are kept short
    for numbers in _chunks(list(mentioned)):
        names = {alert.external_id for number in numbers for alert in mentioned[number]}
        if names:
            asked = {"numbers": numbers, "external_ids": sorted(names)}
            for number, external_id in connection.execute(_ALERTS, asked):
                known.setdefault(number, set()).add(external_id)
    return known


def _chunks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), _CHUNK):
        yield numbers[start : start + _CHUNK]


def _is_younger_than(age: timedelta, now: datetime) -> Callable[[IncidentChange], bool]:
    """Return a test for incidents that may still grow: a backfill brings old ones as well."""
    return lambda change: (change.incident.changed_at or change.incident.occurred_at) > now - age


def _assign_numbers(
    connection: Connection,
    new: Sequence[IncidentChange],
    changed: Sequence[IncidentChange],
    common: Mapping[str, Any],
    now: datetime,
) -> None:
    """Assign numbers to new incidents, and change numbers to new and changed ones."""
    change_numbers = iter(_allot(connection, INCIDENT_CHANGE, len(new) + len(changed)))
    unknown = sum(change.removed is None for change in new)
    numbers = iter(_allot(connection, INCIDENT_NUMBER, unknown))
    for change in new:
        known = change.removed
        number, created_at = (known.number, known.created_at) if known else (next(numbers), now)
        identity = {"number": number, "external_id": change.incident.external_id}
        change.values |= {**common, **identity, "created_at": created_at}
    for change in changed:
        change.values |= change.identity
    for change in (*new, *changed):
        counted = change.stored["alert_count"] if change.stored else 0
        change.values |= {
            "change": next(change_numbers),
            "updated_at": now,
            "alert_count": counted + len(change.alerts),
        }


def _allot(connection: Connection, name: str, count: int) -> Iterable[int]:
    return allot_numbers(connection, name, count) if count else ()


_INSERTS = {
    table: BulkStatement(insert(table), table.columns.keys())
    for table in (incidents, incident_entities, incident_techniques, incident_alerts)
}
_CONSTANT = (*IDENTITY, "created_at", "coverage_id")
_CHANGING = tuple(column.name for column in incidents.c if column.name not in _CONSTANT)
_CHANGE = BulkStatement(
    update(incidents)
    .where(incidents.c.number == bindparam("at_number"))
    .values({name: bindparam(f"to_{name}") for name in _CHANGING}),
    ("at_number", *(f"to_{name}" for name in _CHANGING)),
)


def _insert(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    _INSERTS[table].run(connection, map(itemgetter(*table.columns.keys()), rows))


def _update(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    _CHANGE.run(connection, map(itemgetter("number", *_CHANGING), rows))


def _update_roles(connection: Connection, changes: Iterable[IncidentChange]) -> None:
    rows = [
        {
            "at_number": change.values["number"],
            "at_kind": entity.kind.value,
            "at_value": entity.value,
            "to_role": role.value,
        }
        for change in changes
        for entity, role in change.changed_roles.items()
    ]
    if rows:
        table = incident_entities.c
        statement = update(incident_entities).where(
            table.incident_number == bindparam("at_number"),
            table.kind == bindparam("at_kind"),
            table.value == bindparam("at_value"),
        )
        connection.execute(statement.values(role=bindparam("to_role")), rows)


def _build_rows(
    changes: Iterable[IncidentChange], make: Callable[[IncidentChange], Iterator[dict[str, Any]]]
) -> list[dict[str, Any]]:
    return [row for change in changes for row in make(change)]


def _entity_rows(change: IncidentChange) -> Iterator[dict[str, Any]]:
    since = {"incident_number": change.values["number"], "change": change.values["change"]}
    for entity in change.entities:
        role = change.roles.get(entity)
        named = {"kind": entity.kind.value, "value": entity.value}
        yield {**since, **named, "role": role and role.value}


def _render_change(change: IncidentChange, triage: Mapping[int, Triage]) -> tuple[int, int, str]:
    """Return the number, the change and the document of an incident."""
    columns = {**(change.stored or {}), **change.values}
    entities = (*change.known_entities, *change.entities)
    named = (
        (
            entity.kind.value,
            entity.value,
            change.roles.get(entity) or change.known_roles.get(entity),
        )
        for entity in entities
    )
    number = columns["number"]
    return number, columns["change"], render_document(columns, named, triage.get(number))


def _technique_rows(change: IncidentChange) -> Iterator[dict[str, Any]]:
    known = change.stored["techniques"] if change.stored else ()
    for technique in change.values["techniques"]:
        if technique not in known:
            yield {"incident_number": change.values["number"], "technique": technique}


def _alert_rows(change: IncidentChange) -> Iterator[dict[str, Any]]:
    for alert in change.alerts:
        yield {
            "incident_number": change.values["number"],
            "external_id": alert.external_id,
            "title": alert.title,
            "severity": alert.severity.value,
            "occurred_at": alert.occurred_at,
        }
