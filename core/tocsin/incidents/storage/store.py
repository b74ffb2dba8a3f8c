"""Storage of received incidents in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, bindparam, insert, update

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
from tocsin.incidents.storage.known import load_changes
from tocsin.incidents.storage.merge import (
    IDENTITY,
    IncidentChange,
    fold_versions,
    merge_parts,
)
from tocsin.incidents.storage.normalize import reject_invalid
from tocsin.incidents.storage.refreshes import schedule_refreshes
from tocsin.incidents.storage.removed import recall_removed
from tocsin.incidents.triage import Triage, load_triage
from tocsin.model import Page, Received
from tocsin.store import (
    INCIDENT_CHANGE,
    INCIDENT_NUMBER,
    BulkStatement,
    allot_numbers,
    load_redactor,
    lock_exclusively,
    lock_shared,
)
from tocsin.store.tables import (
    incident_alerts,
    incident_entities,
    incident_techniques,
    incidents,
)

_LOCK = "incidents"
"""Shared by all who store incidents, held alone by those who remove or rewrite them."""


@dataclass(frozen=True, slots=True)
class StoreResult:
    """Result of storing received incidents."""

    counts: ReadCounts
    events: int
    parts: Sequence[ReadCounts]
    """The counts of each part of a batch; an incident in several of them counts in the first."""


def store_page(
    connection: Connection,
    key: StreamKey,
    page: Page,
    *,
    revision: int,
    policy: IncidentPolicy,
    now: datetime,
    reserved: Sequence[int] = (),
) -> StoreResult:
    """Store a page that was read at `revision` of its stream's position, and return the result.

    Raises `StalePosition` where another node has advanced the position since.
    """
    read = (span for span in page.covered if span.lost is None and span.passed_over is None)
    ends = (span.end for span in read if isinstance(span.end, datetime) and span.end != span.start)
    until = max(ends, default=None)
    advance_position(connection, key, revision, page.next_position, covered_until=until, now=now)
    return store_received(connection, key, page, policy=policy, now=now, reserved=reserved)


def store_received(
    connection: Connection,
    key: StreamKey,
    received: Received,
    *,
    policy: IncidentPolicy,
    now: datetime,
    past: bool = False,
    reserved: Sequence[int] = (),
) -> StoreResult:
    """Store incidents from a SIEM as a batch of one part."""
    return store_batch(
        connection, key, [received], policy=policy, now=now, past=past, reserved=reserved
    )


def store_batch(
    connection: Connection,
    key: StreamKey,
    batch: Sequence[Received],
    *,
    policy: IncidentPolicy,
    now: datetime,
    past: bool = False,
    reserved: Sequence[int] = (),
) -> StoreResult:
    """Store what a SIEM has sent in several parts, and return the result.

    Erased values are replaced first. Invalid incidents are quarantined, like records that cannot be
    read. Where nothing says what it covers, it covers this moment. `past` marks incidents from a
    backfill. New incidents get the `reserved` numbers; missing ones are allotted, which others wait
    for. Raises IntegrityError where another transaction has stored a new incident meanwhile.
    """
    lock_shared(connection, _LOCK)
    redactor = load_redactor(connection)
    if redactor is not None:
        batch = [redactor.redact(received) for received in batch]
    batch = [reject_invalid(key.stream, received) for received in batch]
    parts = [fold_versions(received.incidents) for received in batch]
    changes = load_changes(connection, key.provider, merge_parts(parts))
    new = [change for change in changes if change.stored is None]
    changed = [change for change in changes if change.is_changed]
    counted = _count_parts(batch, parts, new, changed)
    counts = sum(counted, ReadCounts())
    recall_removed(connection, key.provider, new)
    _number_incidents(connection, new, key.provider, now, reserved)
    for change in changed:
        change.values |= change.identity
    for change in (*new, *changed):
        change.values |= {"updated_at": now, "alert_count": change.alert_count}
    events = judge_alerts([*new, *changed], policy, now)
    for received in batch:
        further = received.further_rejected
        quarantine_rejected(connection, key, received.rejected, now, further=further)
    if ages := policy.refresh_after:
        names = _find_to_refresh(batch, changes, ages, now, past=past)
        schedule_refreshes(connection, key.provider, names, ages[0], now)
    emit_events(connection, events)
    # Nobody changes the triage meanwhile, which takes the lock alone
    numbers = [change.values["number"] for change in changed]
    triage = load_triage(connection, numbers) if numbers else {}
    rendered = [_render_change(change, triage) for change in new + changed]
    # All that is left is stored by one transaction at a time, in the order of the changes
    _number_changes(connection, new + changed)
    covered = [interval for received in batch for interval in received.covered]
    row = record_coverage(connection, key, covered, counts, now, past=past)
    for change in new:
        change.values["coverage_id"] = row
    _insert(connection, incidents, [change.values for change in new])
    _update(connection, [change.values for change in changed])
    _insert(connection, incident_entities, _build_rows(new + changed, _entity_rows))
    _update_roles(connection, changed)
    store_documents(
        connection,
        (
            (change.values["number"], change.values["change"], document)
            for change, document in zip(new + changed, rendered, strict=True)
        ),
    )
    _insert(connection, incident_techniques, _build_rows(new + changed, _technique_rows))
    _insert(connection, incident_alerts, _build_rows(new + changed, _alert_rows))
    return StoreResult(counts, len(events), counted)


def lock_incidents(connection: Connection) -> None:
    """Exclude all who store incidents until this transaction ends."""
    lock_exclusively(connection, _LOCK)


def _count_parts(
    batch: Sequence[Received],
    parts: Sequence[Collection[str]],
    new: Iterable[IncidentChange],
    changed: Iterable[IncidentChange],
) -> list[ReadCounts]:
    left_new = {change.incident.external_id for change in new}
    left_changed = {change.incident.external_id for change in changed}
    counts = []
    for received, names in zip(batch, parts, strict=True):
        found_new, found_changed = left_new.intersection(names), left_changed.intersection(names)
        rejected = len(received.rejected) + received.further_rejected
        counts.append(ReadCounts(received.records, len(found_new), len(found_changed), rejected))
        left_new -= found_new
        left_changed -= found_changed
    return counts


def _find_to_refresh(
    batch: Sequence[Received],
    changes: Sequence[IncidentChange],
    ages: Sequence[timedelta],
    now: datetime,
    *,
    past: bool,
) -> list[str]:
    """Return the incidents that are new, or whose details are missing."""
    is_young = _is_younger_than(ages[-1], now)
    new = (change for change in changes if change.stored is None)
    young = [change.incident.external_id for change in new if not past or is_young(change)]
    optional = {one.external_id for each in batch for one in each.incidents if one.only_if_stored}
    left_out = optional - {change.incident.external_id for change in changes}
    incomplete = (name for each in batch for name in each.incomplete if name not in left_out)
    return list(dict.fromkeys((*young, *incomplete)))


def _is_younger_than(age: timedelta, now: datetime) -> Callable[[IncidentChange], bool]:
    """Return a test for incidents that may still grow: a backfill brings old ones as well."""
    return lambda change: (change.incident.changed_at or change.incident.occurred_at) > now - age


def _number_incidents(
    connection: Connection,
    new: Sequence[IncidentChange],
    provider: str,
    now: datetime,
    reserved: Sequence[int],
) -> None:
    """Set the columns that identify new incidents."""
    unknown = sum(change.removed is None for change in new)
    missing = max(0, unknown - len(reserved))
    numbers = iter((*reserved, *_allot(connection, INCIDENT_NUMBER, missing)))
    for change in new:
        known = change.removed
        number, created_at = (known.number, known.created_at) if known else (next(numbers), now)
        identity = {"number": number, "external_id": change.incident.external_id}
        change.values |= {"provider": provider, **identity, "created_at": created_at}


def _number_changes(connection: Connection, changes: Sequence[IncidentChange]) -> None:
    for change, number in zip(
        changes, _allot(connection, INCIDENT_CHANGE, len(changes)), strict=True
    ):
        change.values["change"] = number


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


def _render_change(change: IncidentChange, triage: Mapping[int, Triage]) -> str:
    """Return the document of an incident."""
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
    return render_document(columns, named, triage.get(columns["number"]))


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
