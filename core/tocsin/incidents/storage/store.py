"""Storage of received incidents in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from tocsin.events import emit_events, new_id
from tocsin.incidents.coverage import (
    ReadCounts,
    StreamKey,
    advance_position,
    quarantine_rejected,
    record_coverage,
)
from tocsin.incidents.documents import render_document, represent_incident, store_documents
from tocsin.incidents.storage.merge import IDENTITY, IncidentChange, build_changes, fold_versions
from tocsin.incidents.storage.normalize import reject_invalid
from tocsin.model import (
    Entity,
    Event,
    EventType,
    IncidentStatus,
    Marking,
    Page,
    Received,
    Severity,
)
from tocsin.store import (
    INCIDENT_CHANGE,
    INCIDENT_NUMBER,
    BulkStatement,
    allot_numbers,
    build_insert,
)
from tocsin.store.tables import (
    incident_alerts,
    incident_entities,
    incident_techniques,
    incidents,
    rereads,
)


class AlertDecision(StrEnum):
    """Result of the alert decision for an incident."""

    ALERTED = "alerted"
    BELOW_THRESHOLD = "below-threshold"
    FIRST_SEEN_CLOSED = "first-seen-closed"
    QUIET = "quiet"
    ROSE_UNALERTED = "rose-unalerted"


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    """Consequences of the incidents of one provider."""

    public_url: str
    quiet: bool = False
    on_escalation: bool = False
    first_seen_closed: bool = True
    """Whether incidents that are Closed when they are first stored are alerted."""
    refresh_after: tuple[timedelta, ...] = ()
    """The ages at which a new incident is refreshed, in order; empty for never."""
    marking: Marking = field(default_factory=Marking)
    """The sharing marking of the provider's incidents, for receivers that have such a field."""


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
    policy: AlertPolicy,
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
    policy: AlertPolicy,
    now: datetime,
    past: bool = False,
) -> StoreResult:
    """Store incidents from a SIEM, and return the result.

    Invalid incidents are quarantined, like records that cannot be read. Where `received` does not
    say what it covers, it covers this moment. `past` marks incidents from a backfill.
    """
    received = reject_invalid(key.stream, received)
    changes = build_changes(connection, key.provider, fold_versions(received.incidents))
    new = [change for change in changes if change.stored is None]
    changed = [change for change in changes if change.is_changed]
    count = len(received.rejected) + received.further_rejected
    counts = ReadCounts(received.records, len(new), len(changed), count)
    row = record_coverage(connection, key, received.covered, counts, now, past=past)
    _assign_numbers(connection, new, changed, {"provider": key.provider, "coverage_id": row}, now)
    events = _judge_alerts([*new, *changed], policy, now)
    _insert(connection, incidents, [change.values for change in new])
    _update(connection, [change.values for change in changed])
    _insert(connection, incident_entities, _build_rows(new + changed, _entity_rows))
    _update_roles(connection, changed)
    store_documents(connection, map(_render_change, new + changed))
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
    for change, number in zip(new, _allot(connection, INCIDENT_NUMBER, len(new)), strict=True):
        identity = {"number": number, "external_id": change.incident.external_id}
        change.values |= {**common, **identity, "created_at": now}
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


def _judge_alerts(
    changes: Iterable[IncidentChange], policy: AlertPolicy, now: datetime
) -> list[Event]:
    """Set the alert outcome of each change, and return the events of those alerted now."""
    events = []
    for change in changes:
        before = change.stored["alert_outcome"] if change.stored else None
        values = change.values
        outcome = judge_alert(values["severity"], values["status"], before, policy)
        values["alert_outcome"] = outcome
        if outcome is AlertDecision.ALERTED and outcome != before:
            entities = [*change.known_entities, *change.entities]
            columns = {**(change.stored or {}), **values}
            events.append(build_alert_event(columns, entities, policy, now))
    return events


def judge_alert(
    severity: str, status: str, before: str | None, policy: AlertPolicy
) -> AlertDecision:
    """Return the alert outcome of an incident, given its earlier outcome, if any.

    An incident is alerted once: when it is first stored at Medium or above or, where the
    provider's settings allow it, when its severity rises to that. One that is Closed when it is
    first stored is never alerted where the settings say so.
    """
    serious = Severity(severity).rank >= Severity.MEDIUM.rank
    if before is None:
        if status == IncidentStatus.CLOSED and not policy.first_seen_closed:
            return AlertDecision.FIRST_SEEN_CLOSED
        if not serious:
            return AlertDecision.BELOW_THRESHOLD
        return AlertDecision.QUIET if policy.quiet else AlertDecision.ALERTED
    if before == AlertDecision.BELOW_THRESHOLD and serious:
        return AlertDecision.ALERTED if policy.on_escalation else AlertDecision.ROSE_UNALERTED
    return AlertDecision(before)


def build_alert_event(
    incident: Mapping[str, Any], entities: Iterable[Entity], policy: AlertPolicy, now: datetime
) -> Event:
    """Build the `incident-alert` event of an incident, given as its columns."""
    context = represent_incident(
        incident,
        [{"kind": entity.kind.value, "value": entity.value} for entity in entities],
        public_url=policy.public_url,
    )
    members = ("title", "severity", "status", "provider", "url")
    return Event(
        id=new_id("evt"),
        event_type=EventType.INCIDENT_ALERT,
        timestamp=now,
        data={"incident_number": context["number"], **{name: context[name] for name in members}},
        subject=f"incident:{context['number']}",
        context={
            "incident": context,
            "marking": {"tlp": policy.marking.tlp.value, "pap": policy.marking.pap.value},
        },
    )


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


def _render_change(change: IncidentChange) -> tuple[int, int, str]:
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
    return columns["number"], columns["change"], render_document(columns, named)


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


@dataclass(frozen=True, slots=True)
class DueRefresh:
    """An incident that is due for a refresh; `step` counts the earlier ones."""

    external_id: str
    step: int
    created_at: datetime


def schedule_refreshes(
    connection: Connection,
    provider: str,
    external_ids: Sequence[str],
    after: timedelta,
    now: datetime,
) -> None:
    """Schedule the first refresh of new incidents."""
    rows = [(provider, external_id, 0, now, now + after) for external_id in external_ids]
    name = connection.dialect.name
    if name not in _schedule:
        statement = build_insert(connection, rereads).on_conflict_do_nothing()
        _schedule[name] = BulkStatement(statement, _REFRESH)
    _schedule[name].run(connection, rows)


_REFRESH = ("provider", "external_id", "step", "created_at", "due_at")
_schedule: dict[str, BulkStatement] = {}


def load_due_refreshes(
    connection: Connection, provider: str, most: int, now: datetime
) -> list[DueRefresh]:
    """Return the refreshes that are due, the longest overdue first."""
    columns = rereads.c.external_id, rereads.c.step, rereads.c.created_at
    due = select(*columns).where(rereads.c.provider == provider, rereads.c.due_at <= now)
    rows = connection.execute(due.order_by(rereads.c.due_at).limit(most))
    return [DueRefresh(*row) for row in rows]


def postpone_refresh(
    connection: Connection, provider: str, refresh: DueRefresh, *, due_at: datetime
) -> None:
    """Move a refresh that failed to a later time."""
    one = (rereads.c.provider == provider, rereads.c.external_id == refresh.external_id)
    connection.execute(update(rereads).where(*one).values(due_at=due_at))


def complete_refresh(
    connection: Connection, provider: str, refresh: DueRefresh, after: Sequence[timedelta]
) -> None:
    """Schedule the next refresh of an incident, or remove it after the last one.

    `after` holds the ages of the incident at which it is refreshed.
    """
    step = refresh.step + 1
    one = (rereads.c.provider == provider, rereads.c.external_id == refresh.external_id)
    if step >= len(after):
        connection.execute(delete(rereads).where(*one))
        return
    due_at = refresh.created_at + after[step]
    connection.execute(update(rereads).where(*one).values(step=step, due_at=due_at))
