"""Logons that succeeded after several failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tocsin import Entity, EntityKind, Severity
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.correlation.drafts import FindingDraft, grade_strength
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.phrases import (
    count_noun,
    format_time,
    join_entities,
    join_names,
    name_incidents,
    state,
)
from tocsin_plugins.investigator.signs import AttackSign, find_incident_signs

_WITHIN = timedelta(hours=1)
_STRENGTHS = {3: 0.7, 5: 0.9, 10: 1.0}
_OF_INCIDENT = 0.9
_LOGONS = frozenset({AttackSign.LOGON, AttackSign.FAILED_LOGON})
_ORIGINS = (EntityKind.IP, EntityKind.USER)


@dataclass(frozen=True, slots=True)
class _LogonAttempt:
    at: datetime
    succeeded: bool
    reference: str
    involved: tuple[Entity, ...]
    incident: int | None = None


_Run = tuple[tuple[_LogonAttempt, ...], _LogonAttempt]


def find_success_after_failures(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each series of failed logons with a success within the hour.

    A series has 3 or more failed logons, or an incident about them. It is listed with its addresses
    and users.
    """
    runs: dict[_Run, list[Entity]] = {}
    for entity in case.entities:
        if entity.kind not in _ORIGINS or case.find_sighting(entity).well_known:
            continue
        if run := _find_run(_attempts(case, entity)):
            runs.setdefault(run, []).append(entity)
    for (before, success), entities in runs.items():
        yield _build_draft(entities, before, success)


def _attempts(case: CaseFile, entity: Entity) -> list[_LogonAttempt]:
    found = []
    for seen in case.events_with(entity):
        if (signs := seen.signs & _LOGONS) and AttackSign.BRUTE_FORCE not in seen.signs:
            moment, involved = seen.event.occurred_at, seen.event.entities
            found.append(_LogonAttempt(moment, AttackSign.LOGON in signs, seen.step, involved))
    for record in case.incidents_with(entity):
        if signs := find_incident_signs(record) & _LOGONS:
            reference = f"incident:{record.number}"
            attempt = (record.occurred_at, AttackSign.LOGON in signs, reference, record.entities)
            found.append(_LogonAttempt(*attempt, record.number))
    return sorted(found, key=lambda attempt: (attempt.at, attempt.succeeded, attempt.reference))


def _find_run(attempts: Sequence[_LogonAttempt]) -> _Run | None:
    """Return the first success with enough failures in the hour before it, with those failures."""
    for position, success in enumerate(attempts):
        if success.succeeded:
            earlier = (attempt for attempt in attempts[:position] if not attempt.succeeded)
            before = tuple(attempt for attempt in earlier if success.at - attempt.at <= _WITHIN)
            if _strength(before):
                return before, success
    return None


def _strength(before: Sequence[_LogonAttempt]) -> float:
    events = sum(attempt.incident is None for attempt in before)
    by_incident = _OF_INCIDENT if events < len(before) else 0.0
    return max(grade_strength(events, _STRENGTHS), by_incident)


def _build_draft(
    entities: Sequence[Entity], before: Sequence[_LogonAttempt], success: _LogonAttempt
) -> FindingDraft:
    whose = join_entities(entities)
    incidents = sorted(
        {attempt.incident for attempt in (*before, success) if attempt.incident is not None}
    )
    return FindingDraft(
        title=f"a logon involving {whose} succeeded after {_failures(before)}",
        severity=Severity.HIGH,
        strength=_strength(before),
        statements=(
            state(
                f"{_failures(before)} involving {whose} began on {format_time(before[0].at)}",
                *(attempt.reference for attempt in before),
            ),
            state(f"a logon succeeded on {format_time(success.at)}", success.reference),
        ),
        entities=tuple(dict.fromkeys((*entities, *sorted(success.involved, key=entity_sort_key)))),
        incidents=tuple(incidents),
    )


def _failures(before: Sequence[_LogonAttempt]) -> str:
    """Return the failures in words; those in an incident are not counted."""
    events = sum(attempt.incident is None for attempt in before)
    numbers = sorted({attempt.incident for attempt in before if attempt.incident is not None})
    failed = [count_noun(events, "failed logon")] if events else []
    return join_names([*failed, *([name_incidents(numbers)] if numbers else [])])
