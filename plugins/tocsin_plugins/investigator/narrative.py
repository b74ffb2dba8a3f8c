"""Sentences about an incident that summary and findings share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tocsin import Entity, EntityKind, IncidentRecord, Statement
from tocsin_plugins.attack import find_tactics, find_technique_name
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.evidence import SeenEvent
from tocsin_plugins.investigator.phrases import (
    IS,
    count_noun,
    format_time,
    join_entities,
    join_names,
    name_source,
    shorten,
    state,
    to_sentence,
)
from tocsin_plugins.investigator.roles import find_origins, find_sides, list_involved
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


def find_targets(case: CaseFile, record: IncidentRecord) -> list[Entity]:
    """Return the machines and names that an incident names as target; else the internal ones."""
    sides = find_sides(case, record)
    return [
        entity
        for entity in list_involved(case, record)
        if entity.kind in _TARGETS
        and (entity in sides.targets if sides.is_known else case.is_ours(entity))
    ]


def find_machines(case: CaseFile, record: IncidentRecord) -> list[Entity]:
    """Return the attacked machines in an incident, or else their names."""
    every = find_targets(case, record)
    return [entity for entity in every if entity.kind is not EntityKind.DOMAIN] or every


def find_accounts(case: CaseFile, record: IncidentRecord) -> list[Entity]:
    """Return the users and mailboxes in an incident."""
    return [entity for entity in list_involved(case, record) if entity.kind in _ACCOUNTS]


def describe_incident(case: CaseFile, record: IncidentRecord) -> Statement:
    """Return a statement about an incident: title, severity, start and roles of entities."""
    title = shorten(record.title) or "untitled"
    kind = next((sign for sign in _TOLD_FIRST if sign in find_attacks(record)), None)
    what = f" and indicates {kind.value}" if kind else ""
    alerts = count_noun(record.alert_count, "alert") if record.alert_count else ""
    source = f"{alerts} from {name_source(f'provider:{record.provider}')}".lstrip()
    details = f"{describe_severity(record)}, {record.status.value}, {source}"
    text = f"incident {record.number}, “{title}” ({details})"
    text = f"{text}, began on {format_time(record.occurred_at)}{what}"
    sentences = map(to_sentence, [text, *_describe_roles(case, record)])
    return state(" ".join(sentences), f"incident:{record.number}")


def describe_severity(record: IncidentRecord) -> str:
    """Return the severity of an incident, with a note if it is assumed."""
    return f"{record.severity.value}{', assumed' if record.severity_assumed else ''}"


def describe_techniques(record: IncidentRecord) -> Iterator[Statement]:
    """Yield the techniques of an incident by name, each with its tactics."""
    if record.techniques:
        names = join_names([_technique(technique) for technique in record.techniques], _MOST)
        yield state(f"techniques: {names}", f"incident:{record.number}")


def describe_alerts(record: IncidentRecord) -> Iterator[Statement]:
    """Yield the titles of an incident's alerts, if they differ from its own."""
    titles = list(dict.fromkeys(shorten(alert.title) for alert in record.alerts))
    if [title for title in titles if title != shorten(record.title)]:
        names = join_names([f"“{title}”" for title in titles], _MOST)
        yield state(f"alerts: {names}", f"incident:{record.number}")


def describe_reactions(case: CaseFile, record: IncidentRecord) -> Iterator[Statement]:
    """Yield the SIEM's responses to an incident, as far as its records show them.

    Records of the incident itself count, and later ones of its origins.
    """
    found: dict[str, str] = {}
    for seen in (*case.find_own_events(record), *_later(case, record)):
        if clause := find_block_clause(describe_event(seen.event)):
            found.setdefault(clause, seen.step)
    if not found and (clause := find_block_clause(record.description)):
        found[clause] = f"incident:{record.number}"
    provider = name_source(f"provider:{record.provider}")
    for clause, reference in islice(found.items(), _MOST):
        yield state(f"{provider} reports this response: “{shorten(clause, 160)}”", reference)


def describe_pass(case: CaseFile, record: IncidentRecord) -> Iterator[Statement]:
    """Yield that the SIEM allowed the activity of an incident, if its records say so."""
    texts = {describe_event(seen.event): seen.step for seen in case.find_own_events(record)}
    texts.setdefault(record.description, f"incident:{record.number}")
    provider = name_source(f"provider:{record.provider}")
    for text, reference in texts.items():
        if clause := find_pass_clause(text):
            passed = f"{provider} reports that the activity was allowed: “{shorten(clause, 160)}”"
            yield state(passed, reference)
            return


def _later(case: CaseFile, record: IncidentRecord) -> list[SeenEvent]:
    """Return later events of the incident's SIEM with its origins."""
    events = [seen for origin in find_origins(case, record) for seen in case.events_with(origin)]
    return [
        seen
        for seen in events
        if seen.provider == record.provider and seen.event.occurred_at >= record.occurred_at
    ]


def _describe_roles(case: CaseFile, record: IncidentRecord) -> Iterator[str]:
    """Yield clauses about sources, targets and other entities of an incident."""
    every, sides = list_involved(case, record), find_sides(case, record)
    sources = [entity for entity in every if entity in sides.sources]
    targets = [entity for entity in every if entity in sides.targets]
    others = [entity for entity in every if entity not in {*sources, *targets}]
    named = (("source", sources), ("target", targets))
    if roles := [_name_role(role, entities) for role, entities in named if entities]:
        yield ", and ".join(roles)
        if others:
            yield f"{join_entities(others)} {IS[len(others) == 1]} also involved"
    elif others:
        yield f"It involves {join_entities(others)}"


def _name_role(role: str, entities: Sequence[Entity]) -> str:
    called = f"the {role} is" if len(entities) == 1 else f"the {role}s are"
    return f"{called} {join_entities(entities)}"


def _technique(technique: str) -> str:
    """Return a technique by name, such as `Brute Force (T1110, credential-access)`."""
    tactics = ", ".join(find_tactics(technique))
    behind = f"{shorten(technique)}, {tactics}" if tactics else shorten(technique)
    name = find_technique_name(technique)
    return f"{name} ({behind})" if name else behind
