"""Storage of received incidents in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from tocsin.events import emit_events, new_id
from tocsin.incidents.coverage import ledger
from tocsin.incidents.coverage.positions import StreamKey, advance_position
from tocsin.incidents.queries import represent_incident
from tocsin.incidents.storage.merge import IDENTITY, Draft, fold_versions, make_drafts
from tocsin.incidents.storage.normalize import reject_invalid
from tocsin.model import Covered, Entity, Event, EventType, Page, Received, Severity
from tocsin.store.sequences import INCIDENT_CHANGE, INCIDENT_NUMBER, allot_numbers
from tocsin.store.statements import build_insert
from tocsin.store.tables import (
    incident_alerts,
    incident_entities,
    incident_techniques,
    incidents,
    quarantine,
    rereads,
)
from tocsin.store.text import clean_text

ALERTED = "alerted"
BELOW = "below-threshold"
QUIET = "quiet"
ROSE = "rose-unalerted"


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    """What follows from one provider's incidents."""

    public_url: str
    quiet: bool = False
    on_escalation: bool = False
    reread_after: tuple[timedelta, ...] = ()
    """How long after it was new an incident is read again, in order; nothing where it is not."""


def judge_alert(severity: str, before: str | None, policy: AlertPolicy) -> str:
    """Return what is to be said of an incident's alert, given what was said before, if anything.

    An incident is alerted once: when it is first stored at Medium or above or, where the
    provider's settings ask for it, when it rises to that.
    """
    serious = Severity(severity).rank >= Severity.MEDIUM.rank
    if before is None:
        return (QUIET if policy.quiet else ALERTED) if serious else BELOW
    if before == BELOW and serious:
        return ALERTED if policy.on_escalation else ROSE
    return before


def build_alert_event(
    incident: Mapping[str, Any], entities: Iterable[Entity], policy: AlertPolicy, now: datetime
) -> Event:
    """Return the `incident-alert` of an incident, given as its columns."""
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
        context={"incident": context},
    )


@dataclass(frozen=True, slots=True)
class DueRefresh:
    """An incident that is due to be read again; `step` counts how often it was."""

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
    """Have these new incidents read again `after` now."""
    rows = [
        {
            "provider": provider,
            "external_id": external_id,
            "step": 0,
            "created_at": now,
            "due_at": now + after,
        }
        for external_id in external_ids
    ]
    if rows:
        connection.execute(build_insert(connection, rereads).on_conflict_do_nothing(), rows)


def load_due_refreshes(
    connection: Connection, provider: str, most: int, now: datetime
) -> list[DueRefresh]:
    """Return what is due, the longest due first."""
    columns = rereads.c.external_id, rereads.c.step, rereads.c.created_at
    due = select(*columns).where(rereads.c.provider == provider, rereads.c.due_at <= now)
    rows = connection.execute(due.order_by(rereads.c.due_at).limit(most))
    return [DueRefresh(*row) for row in rows]


def postpone_refresh(
    connection: Connection, provider: str, reread: DueRefresh, *, due_at: datetime
) -> None:
    """Have an incident that could not be read again read later."""
    one = (rereads.c.provider == provider, rereads.c.external_id == reread.external_id)
    connection.execute(update(rereads).where(*one).values(due_at=due_at))


def complete_refresh(
    connection: Connection, provider: str, reread: DueRefresh, after: Sequence[timedelta]
) -> None:
    """Note that an incident was read again: it is due next as `after` has it, or done with.

    Each of `after` counts from when the incident was new.
    """
    step = reread.step + 1
    one = (rereads.c.provider == provider, rereads.c.external_id == reread.external_id)
    if step >= len(after):
        connection.execute(delete(rereads).where(*one))
        return
    due_at = reread.created_at + after[step]
    connection.execute(update(rereads).where(*one).values(step=step, due_at=due_at))


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What storing came to."""

    counts: ledger.ReadCounts
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
    """Store a page read at `revision` of its stream's position, and return what it brought.

    Raises Superseded where another node has read on from there.
    """
    until = _find_covered_until(page)
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
    """Store what came from a SIEM, and return what it brought.

    An incident that cannot be kept is kept aside, as a record that could not be read is. Where
    it does not say what of the SIEM it accounts for, it accounts for this moment. `past` says that
    a backfill brought it.
    """
    received = reject_invalid(key.stream, received)
    drafts = make_drafts(connection, key.provider, fold_versions(received.incidents))
    new = [draft for draft in drafts if draft.stored is None]
    changed = [draft for draft in drafts if draft.changed]
    counts = ledger.ReadCounts(received.records, len(new), len(changed), len(received.rejected))
    row = _record_coverage(connection, key, received, counts, now, past=past)
    _number_drafts(connection, new, changed, {"provider": key.provider, "coverage_id": row}, now)
    events = _judge_alerts([*new, *changed], policy, now)
    _insert(connection, incidents, [draft.values for draft in new])
    _update(connection, [draft.values for draft in changed])
    _insert(connection, incident_entities, _build_rows(new + changed, _entity_rows))
    _insert(connection, incident_techniques, _build_rows(new + changed, _technique_rows))
    _insert(connection, incident_alerts, _build_rows(new + changed, _alert_rows))
    _insert(connection, quarantine, _rejected_rows(key, received, now))
    if after := policy.reread_after:
        young = [it.incident.external_id for it in new if not past or _is_young(it, after, now)]
        names = list(dict.fromkeys((*young, *received.incomplete)))
        schedule_refreshes(connection, key.provider, names, after[0], now)
    emit_events(connection, events)
    return StoreResult(counts, len(events))


def _is_young(draft: Draft, after: Sequence[timedelta], now: datetime) -> bool:
    """Return whether more may still come to an incident: a backfill brings what is old as well."""
    incident = draft.incident
    return (incident.changed_at or incident.occurred_at) > now - after[-1]


def _find_covered_until(page: Page) -> datetime | None:
    """Return up to when the page was read, None where it covers no time."""
    read = (it for it in page.covered if it.lost is None and it.passed_over is None)
    ends = (it.end for it in read if isinstance(it.end, datetime) and it.end != it.start)
    return max(ends, default=None)


def _record_coverage(
    connection: Connection,
    key: StreamKey,
    received: Received,
    counts: ledger.ReadCounts,
    now: datetime,
    *,
    past: bool,
) -> int | None:
    """Return the ledger's row of what was received, None where there is nothing to account for."""
    stretches = received.covered
    if not stretches and counts != ledger.ReadCounts():
        stretches = (Covered(source=key.stream, start=now, end=now),)
    rows = [
        ledger.record_interval(connection, key, stretch, now, past=past) for stretch in stretches
    ]
    read = [row for row, stretch in zip(rows, stretches, strict=True) if stretch.lost is None]
    row = next(iter(read or rows), None)
    if row is not None:
        ledger.add_counts(connection, row, counts)
    return row


def _number_drafts(
    connection: Connection,
    new: Sequence[Draft],
    changed: Sequence[Draft],
    common: Mapping[str, Any],
    now: datetime,
) -> None:
    """Give the new drafts their numbers, and all of them what every change brings with it."""
    changes = iter(_allot(connection, INCIDENT_CHANGE, len(new) + len(changed)))
    for draft, number in zip(new, _allot(connection, INCIDENT_NUMBER, len(new)), strict=True):
        identity = {"number": number, "external_id": draft.incident.external_id}
        draft.values |= {**common, **identity, "created_at": now}
    for draft in changed:
        draft.values |= draft.identity
    for draft in (*new, *changed):
        counted = draft.stored["alert_count"] if draft.stored else 0
        draft.values |= {
            "change": next(changes),
            "updated_at": now,
            "alert_count": counted + len(draft.alerts),
        }


def _allot(connection: Connection, name: str, count: int) -> Iterable[int]:
    return allot_numbers(connection, name, count) if count else ()


def _judge_alerts(drafts: Iterable[Draft], policy: AlertPolicy, now: datetime) -> list[Event]:
    """Note each draft's alert outcome, and return the events of those that are alerted now."""
    events = []
    for draft in drafts:
        before = draft.stored["alert_outcome"] if draft.stored else None
        outcome = judge_alert(draft.values["severity"], before, policy)
        draft.values["alert_outcome"] = outcome
        if outcome == ALERTED != before:
            entities = [*draft.known_entities, *draft.entities]
            columns = {**(draft.stored or {}), **draft.values}
            events.append(build_alert_event(columns, entities, policy, now))
    return events


def _insert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _update(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        names = [name for name in rows[0] if name not in IDENTITY]
        statement = (
            update(incidents)
            .where(incidents.c.number == bindparam("at_number"))
            .values({name: bindparam(f"to_{name}") for name in names})
        )
        parameters = [
            {"at_number": row["number"], **{f"to_{name}": row[name] for name in names}}
            for row in rows
        ]
        connection.execute(statement, parameters)


def _build_rows(
    drafts: Iterable[Draft], make: Callable[[Draft], Iterator[dict[str, Any]]]
) -> list[dict[str, Any]]:
    return [row for draft in drafts for row in make(draft)]


def _entity_rows(draft: Draft) -> Iterator[dict[str, Any]]:
    since = {"incident_number": draft.values["number"], "change": draft.values["change"]}
    for entity in draft.entities:
        yield {**since, "kind": entity.kind.value, "value": entity.value}


def _technique_rows(draft: Draft) -> Iterator[dict[str, Any]]:
    known = draft.stored["techniques"] if draft.stored else ()
    for technique in draft.values["techniques"]:
        if technique not in known:
            yield {"incident_number": draft.values["number"], "technique": technique}


def _alert_rows(draft: Draft) -> Iterator[dict[str, Any]]:
    for alert in draft.alerts:
        yield {
            "incident_number": draft.values["number"],
            "external_id": alert.external_id,
            "title": alert.title,
            "severity": alert.severity.value,
            "occurred_at": alert.occurred_at,
        }


def _rejected_rows(key: StreamKey, received: Received, now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "provider": key.provider,
            "stream": key.stream,
            "source": clean_text(record.source, ledger.SOURCE),
            "location": clean_text(record.location, ledger.REASON),
            "reason": clean_text(record.reason, ledger.REASON),
            "content": record.content[:16_384],
            "created_at": now,
        }
        for record in received.rejected
    ]
