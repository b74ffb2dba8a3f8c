"""Sentences about an incident that summary and findings share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tocsin import Entity, EntityKind, IncidentRecord, Statement
from tocsin_plugins.attack import find_tactics, find_technique_name
from tocsin_plugins.investigator.case import ORIGINS, Case
from tocsin_plugins.investigator.evidence import SeenEvent, entity_sort_key
from tocsin_plugins.investigator.phrases import (
    asked_called,
    at,
    counted,
    listed,
    say,
    shown,
    together,
)
from tocsin_plugins.investigator.signs import (
    AttackSign,
    describe_event,
    find_attacks,
    find_block_clause,
    find_pass_clause,
)

_TARGETS = frozenset({EntityKind.HOST, EntityKind.IP, EntityKind.DOMAIN, EntityKind.CLOUD_RESOURCE})
_ACCOUNTS = frozenset({EntityKind.USER, EntityKind.MAILBOX})
_MOST = 5
_TOLD_FIRST = (
    AttackSign.MALWARE,
    AttackSign.CALLBACK,
    AttackSign.EXPLOIT,
    AttackSign.BRUTE_FORCE,
    AttackSign.SCAN,
)


def find_origins(case: Case, record: IncidentRecord) -> list[Entity]:
    """Return who from outside an incident is about: addresses that are neither ours nor known."""
    return [it for it in _involved(case, record) if it.kind in ORIGINS and case.is_outside(it)]


def find_targets(case: Case, record: IncidentRecord) -> list[Entity]:
    """Return which machines and names of ours an incident is about."""
    return [it for it in _involved(case, record) if it.kind in _TARGETS and case.is_ours(it)]


def find_machines(case: Case, record: IncidentRecord) -> list[Entity]:
    """Return which machines of ours an incident is about; their names, where it has no more."""
    every = find_targets(case, record)
    return [it for it in every if it.kind is not EntityKind.DOMAIN] or every


def find_accounts(case: Case, record: IncidentRecord) -> list[Entity]:
    """Return the users and mailboxes that an incident is about."""
    return [it for it in _involved(case, record) if it.kind in _ACCOUNTS]


def describe_incident(case: Case, record: IncidentRecord) -> Statement:
    """Return what an incident is, how bad, since when, and who did it to whom."""
    title = shown(record.title) or "without a title"
    kind = next((it for it in _TOLD_FIRST if it in find_attacks(record)), None)
    what = f"shows {kind.value} and began" if kind else "began"
    alerts = counted(record.alert_count, "alert") if record.alert_count else ""
    teller = f"{alerts} of {asked_called(f'provider:{record.provider}')}".lstrip()
    standing = f"{describe_severity(record)}, {record.status.value}, {teller}"
    text = f"incident {record.number}, “{title}” ({standing})"
    text = f"{text}, {what} at {at(record.occurred_at)}"
    return say(f"{text}{_who(case, record)}", f"incident:{record.number}")


def describe_severity(record: IncidentRecord) -> str:
    """Return how severe an incident is; that it is assumed, where its SIEM did not say."""
    return f"{record.severity.value}{', which is assumed' if record.severity_assumed else ''}"


def describe_techniques(record: IncidentRecord) -> Iterator[Statement]:
    """Yield the techniques of an incident by name, each with the tactics that it serves."""
    if record.techniques:
        names = listed([_technique(technique) for technique in record.techniques], _MOST)
        yield say(f"its techniques: {names}", f"incident:{record.number}")


def describe_alerts(record: IncidentRecord) -> Iterator[Statement]:
    """Yield the titles of an incident's alerts, where they are not its own."""
    titles = list(dict.fromkeys(shown(alert.title) for alert in record.alerts))
    if [title for title in titles if title != shown(record.title)]:
        names = listed([f"“{title}”" for title in titles], _MOST)
        yield say(f"its alerts: {names}", f"incident:{record.number}")


def describe_reactions(case: Case, record: IncidentRecord) -> Iterator[Statement]:
    """Yield what the SIEM did against an incident, as far as its records say so.

    That is what they say of the incident itself, or later of those that it came from.
    """
    found: dict[str, str] = {}
    for seen in (*case.find_own_events(record), *_later(case, record)):
        if told := find_block_clause(describe_event(seen.event)):
            found.setdefault(told, seen.step)
    if not found and (told := find_block_clause(record.description)):
        found[told] = f"incident:{record.number}"
    provider = asked_called(f"provider:{record.provider}")
    for told, reference in islice(found.items(), _MOST):
        yield say(f"what {provider} did against it: “{shown(told, 160)}”", reference)


def describe_pass(case: Case, record: IncidentRecord) -> Iterator[Statement]:
    """Yield that the SIEM let pass what an incident tells of, where its own records say so."""
    texts = {describe_event(seen.event): seen.step for seen in case.find_own_events(record)}
    texts.setdefault(record.description, f"incident:{record.number}")
    told = ((find_pass_clause(text), reference) for text, reference in texts.items())
    provider = asked_called(f"provider:{record.provider}")
    for words, reference in islice(((it, ref) for it, ref in told if it), 1):
        yield say(f"{provider} let it pass: “{shown(words, 160)}”", reference)


def _later(case: Case, record: IncidentRecord) -> list[SeenEvent]:
    """Return the events of an incident's SIEM since then with those that it came from."""
    events = [seen for origin in find_origins(case, record) for seen in case.events_with(origin)]
    return [
        seen
        for seen in events
        if seen.provider == record.provider and seen.event.occurred_at >= record.occurred_at
    ]


def _who(case: Case, record: IncidentRecord) -> str:
    """Return who did it to whom, what has a part in it besides, and nothing where none is told."""
    by, to = find_origins(case, record), find_targets(case, record)
    users = find_accounts(case, record)
    others = [it for it in _involved(case, record) if it not in {*by, *to, *users}]
    sides = [together(side) for side in (by, [*to, *users]) if side]
    told = [" against ".join(sides)] if sides else []
    told += [f"involving {together(others)}"] if others else []
    return f": {', '.join(told)}" if told else ""


def _involved(case: Case, record: IncidentRecord) -> list[Entity]:
    kept = set(record.entities) - case.scope.ignored_entities
    return sorted(kept, key=entity_sort_key)


def _technique(technique: str) -> str:
    """Return a technique by name, as `Brute Force (T1110, credential-access)`."""
    tactics = ", ".join(find_tactics(technique))
    behind = f"{shown(technique)}, {tactics}" if tactics else shown(technique)
    name = find_technique_name(technique)
    return f"{name} ({behind})" if name else behind
