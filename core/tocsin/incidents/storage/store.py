"""Storage of received incidents in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, bindparam, func, insert, select, update

from tocsin.events import emit_events
from tocsin.incidents.coverage import (
    EXTENSION,
    ReadCounts,
    StreamKey,
    advance_position,
    quarantine_rejected,
    record_coverage,
    redact_part,
)
from tocsin.incidents.documents import (
    DOCUMENT_UPSERT,
    build_document_rows,
    render_document,
)
from tocsin.incidents.storage.alerts import IncidentPolicy, judge_alerts
from tocsin.incidents.storage.followed_changes import emit_version_changes
from tocsin.incidents.storage.merge import (
    IDENTITY,
    EntityRole,
    IncidentChange,
    compare_versions,
    fold_versions,
    merge_parts,
)
from tocsin.incidents.storage.normalize import identify, limit_records, reject_invalid
from tocsin.incidents.storage.refreshes import find_incidents_to_refresh, schedule_refreshes
from tocsin.incidents.storage.removed import recall_removed
from tocsin.incidents.triage import Triage, load_triage
from tocsin.model import Alert, Entity, EntityKind, Incident, Page, Received
from tocsin.store import (
    INCIDENT_CHANGE,
    INCIDENT_NUMBER,
    BulkStatement,
    NumberedWrites,
    allot_numbers,
    build_insert,
    is_among,
    is_in,
    list_keys,
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
_CHUNK = 50
_TOGETHER = 50  # incidents of one statement on SQLite
_i = incidents.c
_NUMBERS = list_keys(_i.number, _i.provider, _i.external_id, "external_ids")
# Who stores another version at once waits, and then finds this one; the order avoids deadlocks
_STORED = (
    select(incidents)
    .where(is_among(_i.number, _NUMBERS))
    .order_by(_i.number)
    .with_for_update(key_share=True)
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
_COUNT = select(func.count()).select_from(_NUMBERS.alias("found"))


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
    lock_shared(connection, _LOCK, enable_seqscan="off")
    batch = [limit_records(received, are_stored=policy.stores_records) for received in batch]
    redactor = load_redactor(connection)
    if redactor is not None:
        batch = [redact_part(redactor, received) for received in batch]
    batch = [reject_invalid(key.stream, received) for received in batch]
    parts = [fold_versions(received.incidents) for received in batch]
    changes = _load_changes(connection, key.provider, merge_parts(parts))
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
    if any(received.rejected or received.further_rejected for received in batch):
        quarantine_rejected(connection, key, batch, now, redactor=redactor)
    if ages := policy.refresh_after:
        names = find_incidents_to_refresh(batch, changes, ages, now, past=past)
        schedule_refreshes(connection, key.provider, names, ages[0], now)
    emit_events(connection, events)
    # Nobody changes the triage meanwhile, which takes the lock alone
    numbers = [change.values["number"] for change in changed]
    triage = load_triage(connection, numbers) if numbers else {}
    followed = 0
    if changed:
        followed = emit_version_changes(connection, changed, triage, policy.public_url, now)
    rendered = [_render_change(change, triage) for change in new + changed]
    _update_roles(connection, changed)
    covered = [interval for received in batch for interval in received.covered]
    record = record_coverage(connection, key, covered, counts, now, past=past)
    for change in new:
        change.values["coverage_id"] = record.row
    _write(connection, new + changed, rendered, record.extension)
    return StoreResult(counts, len(events) + followed, counted)


def count_unknown(connection: Connection, provider: str, page: Iterable[Incident]) -> int:
    """Return how many of these incidents are new; an estimate if some are redacted later."""
    ids = {
        name
        for incident in page
        if not incident.only_if_stored and (name := identify(incident)) is not None
    }
    asked = {"provider": provider, "external_ids": list(ids)}
    return len(ids) - int(connection.execute(_COUNT, asked).scalar_one())


def lock_incidents(connection: Connection) -> None:
    """Exclude all who store incidents until this transaction ends."""
    lock_exclusively(connection, _LOCK)


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
    for start in range(0, len(mentioned), _CHUNK):
        numbers = list(mentioned)[start : start + _CHUNK]
        names = {alert.external_id for number in numbers for alert in mentioned[number]}
        if names:
            asked = {"numbers": numbers, "external_ids": sorted(names)}
            for number, external_id in connection.execute(_ALERTS, asked):
                known.setdefault(number, set()).add(external_id)
    return known


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


def _allot(connection: Connection, name: str, count: int) -> Iterable[int]:
    return allot_numbers(connection, name, count) if count else ()


def _build_upsert(connection: Connection) -> Any:
    statement = build_insert(connection, incidents)
    changing = [each.name for each in incidents.columns if each.name not in _CONSTANT]
    replaced = {name: statement.excluded[name] for name in changing}
    return statement.on_conflict_do_update(index_elements=["number"], set_=replaced)


_CONSTANT = (*IDENTITY, "created_at", "coverage_id")
_INCIDENTS = BulkStatement(_build_upsert, incidents.columns.keys(), together=_TOGETHER)
_PARTS: Mapping[Table, Callable[[IncidentChange], Iterator[dict[str, Any]]]] = {
    incident_entities: IncidentChange.entity_rows,
    incident_techniques: IncidentChange.technique_rows,
    incident_alerts: IncidentChange.alert_rows,
}
_WRITES = NumberedWrites(
    INCIDENT_CHANGE,
    "change",
    {
        "incidents": _INCIDENTS,
        "documents": DOCUMENT_UPSERT,
        **{table.name: BulkStatement(insert(table), table.columns.keys()) for table in _PARTS},
    },
    EXTENSION,
)


def _write(
    connection: Connection,
    changes: Sequence[IncidentChange],
    rendered: Sequence[str],
    extension: Mapping[str, Any] | None,
) -> None:
    """Store the changes with their numbers, as the last step: from here on, all others wait."""
    if not changes:
        if extension is not None:
            connection.execute(EXTENSION, extension)
        return
    for place, change in enumerate(changes, start=1):
        change.values["change"] = place
    columns = itemgetter(*incidents.columns.keys())
    rows: dict[str, list[tuple[Any, ...]]] = {
        "incidents": [columns({**(change.stored or {}), **change.values}) for change in changes],
        "documents": build_document_rows(
            (change.values["number"], change.values["change"], document)
            for change, document in zip(changes, rendered, strict=True)
        ),
    }
    for table, make in _PARTS.items():
        pick = itemgetter(*table.columns.keys())
        rows[table.name] = [pick(row) for change in changes for row in make(change)]
    _WRITES.run(connection, len(changes), rows, extension)


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


def _render_change(change: IncidentChange, triage: Mapping[int, Triage]) -> str:
    """Return the document of an incident."""
    columns = {**(change.stored or {}), **change.values}
    return render_document(columns, change.named_entities(), triage.get(columns["number"]))
