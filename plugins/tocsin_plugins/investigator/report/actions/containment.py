"""Containment actions: isolate, reset, block, collect traces, watch."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import (
    Action,
    Disposition,
    Entity,
    EntityKind,
    Finding,
    IncidentRecord,
    Severity,
    Statement,
    Verdict,
)
from tocsin_plugins.investigator.assessment import Conclusion
from tocsin_plugins.investigator.case import cite_incidents
from tocsin_plugins.investigator.evidence import entity_sort_key, list_evidence
from tocsin_plugins.investigator.narrative import describe_reactions
from tocsin_plugins.investigator.phrases import (
    count_noun,
    join_entities,
    join_names,
    name_entity,
    name_incidents,
    state,
    to_sentence,
)
from tocsin_plugins.investigator.roles import (
    OUTBOUND,
    find_infected,
    find_origins,
    find_subjects,
)
from tocsin_plugins.investigator.signs import AttackSign, find_attacks


def build_action(conclusion: Conclusion, text: str, reason: Statement) -> Action:
    """Return an action, urgent if the verdict is malicious."""
    urgent = conclusion.verdict is Verdict.MALICIOUS
    return Action(text=to_sentence(text), reason=reason, urgent=urgent)


def cite_finding(finding: Finding) -> Statement:
    """Return a finding as a reason."""
    evidence = list_evidence(finding.statements)
    return state(f"{finding.title} ({finding.id})", *evidence)


def cite_records(word: str, records: list[IncidentRecord]) -> Statement:
    """Return a statement about incidents as a reason."""
    which = name_incidents(record.number for record in records)
    return state(f"{which} {word}", *cite_incidents(records))


def find_showing(conclusion: Conclusion, *signs: AttackSign) -> list[IncidentRecord]:
    """Return the incidents in focus with one of these signs; none if the verdict is benign."""
    if conclusion.verdict is Verdict.BENIGN:
        return []
    return [record for record in conclusion.case.in_focus if find_attacks(record) & set(signs)]


_INTRUSIONS = ("success-after-failures", "callback", "lateral-movement")
_BLOCKED = frozenset({EntityKind.IP, EntityKind.DOMAIN, EntityKind.URL, EntityKind.FILE_HASH})
_MACHINES = frozenset({EntityKind.HOST, EntityKind.IP})
_ATTACKS = (AttackSign.BRUTE_FORCE, AttackSign.FAILED_LOGON, AttackSign.EXPLOIT, AttackSign.SCAN)
_TOLD_ATTACKS = frozenset({AttackSign.BRUTE_FORCE, AttackSign.EXPLOIT, AttackSign.SCAN})
_MANY = 3
"""Number of failed logons from which on they are not typing errors."""
_WORTH_WORK = 40


def isolate(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to isolate compromised machines."""
    for machine, reason in find_compromised(conclusion).items():
        too = " and collect its memory and logs" if machine.kind is EntityKind.HOST else ""
        yield build_action(conclusion, f"isolate {name_entity(machine)}{too}", reason)


def collect(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to collect volatile evidence if an intrusion is likely."""
    if conclusion.score < _WORTH_WORK:
        return
    isolated = find_compromised(conclusion)
    for finding in conclusion.select_findings("attack-sequence"):
        hosts = [
            entity
            for entity in finding.entities
            if entity.kind is EntityKind.HOST and entity not in isolated
        ]
        if hosts:
            reason = cite_finding(finding)
            yield build_action(
                conclusion, f"collect memory and logs from {join_entities(hosts)}", reason
            )


def reset(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to reset compromised accounts."""
    for finding in conclusion.select_findings("success-after-failures"):
        for entity in finding.entities:
            if entity.kind in (EntityKind.USER, EntityKind.EMAIL, EntityKind.MAILBOX):
                text = f"reset the password of {name_entity(entity)} and end its sessions"
                yield build_action(conclusion, text, cite_finding(finding))


def block(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to block malicious entities and the origins of attacks."""
    yield from _blocked(conclusion).values()


def _blocked(conclusion: Conclusion) -> dict[Entity, Action]:
    """Return the entities to block, each for its first reason."""
    chosen: dict[Entity, Action] = {}
    for entity, action in _to_block(conclusion):
        if _can_be_blocked(conclusion, entity):
            chosen.setdefault(entity, action)
    return chosen


def _to_block(conclusion: Conclusion) -> Iterator[tuple[Entity, Action]]:
    case = conclusion.case
    for entity in case.entities:
        if case.find_disposition(entity) is Disposition.MALICIOUS and _acts(conclusion, entity):
            reason = _called_malicious(conclusion, entity)
            yield entity, build_action(conclusion, f"block {name_entity(entity)}", reason)
    for record in find_showing(conclusion, *_ATTACKS, *OUTBOUND):
        for origin in find_origins(case, record):
            yield origin, _against(conclusion, origin, record)
    for entity, reason in _attackers(conclusion):
        yield entity, build_action(conclusion, f"block {name_entity(entity)}", reason)


def _attackers(conclusion: Conclusion) -> Iterator[tuple[Entity, Statement]]:
    """Yield the external addresses that got in or that events show attacks of."""
    case = conclusion.case
    for finding in conclusion.select_findings("success-after-failures", "attack-sequence"):
        if finding.severity is Severity.HIGH:
            actors = (one for one in finding.entities if _acts(conclusion, one))
            yield from ((entity, cite_finding(finding)) for entity in actors)
    if conclusion.verdict is not Verdict.BENIGN:
        for entity in sorted(find_subjects(case), key=entity_sort_key):
            own = [seen for seen in case.events_with(entity) if entity in seen.sides.sources]
            attacks = [seen for seen in own if seen.signs & _TOLD_ATTACKS]
            failed = [seen for seen in own if AttackSign.FAILED_LOGON in seen.signs]
            attacks += failed if len(failed) >= _MANY else []
            if attacks:
                number = count_noun(len(attacks), "event")
                text = f"{number} from this entity {_SHOW[len(attacks) == 1]} an attack"
                yield entity, state(text, *(seen.step for seen in attacks))


def _acts(conclusion: Conclusion, entity: Entity) -> bool:
    """Return whether an entity may be blocked by its role.

    An address must attack or be contacted by infected machines, unless no incident or event
    involves it. Other kinds have no side, and only must not be what an attacker asked for.
    """
    roles = conclusion.roles
    if entity.kind is EntityKind.IP and entity in roles.involved:
        return entity in roles.attackers | roles.contacted
    return entity not in roles.victims


_SHOW = {True: "shows", False: "show"}


def watch(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to watch suspicious entities that are not blocked and not attacked."""
    blocked = _blocked(conclusion)
    for finding in conclusion.select_findings("reputation", "recurrence", "disagreement"):
        entity = finding.entities[0]
        is_left = entity not in blocked and _acts(conclusion, entity)
        if conclusion.case.is_outside(entity) and is_left:
            yield Action(text=f"Watch {name_entity(entity)}.", reason=cite_finding(finding))


def find_compromised(conclusion: Conclusion) -> dict[Entity, Statement]:
    """Return the internal machines that may be compromised, each with one reason.

    They called a bad server, moved to other machines, run malware, or an external attacker logged
    on to them. A machine that was merely attacked is not among them.
    """
    found: dict[Entity, Statement] = {}
    if conclusion.verdict is Verdict.BENIGN:
        return found
    case, roles = conclusion.case, conclusion.roles
    is_likely = conclusion.score >= _WORTH_WORK
    for finding in conclusion.select_findings(*_INTRUSIONS) if is_likely else ():
        held = set(finding.entities)
        if finding.kind == "success-after-failures":
            held &= roles.entered
        elif finding.kind == "callback":
            held -= {finding.entities[0]}
        else:
            held &= {finding.entities[0]}
        for entity in sorted(held, key=entity_sort_key):
            is_known = case.find_disposition(entity) is Disposition.BENIGN
            if case.is_ours(entity) and entity.kind in _MACHINES and not is_known:
                found.setdefault(entity, cite_finding(finding))
    for record in find_showing(conclusion, AttackSign.MALWARE, AttackSign.CALLBACK):
        reason = cite_records("shows malware or a callback", [record])
        least = Severity.HIGH if is_likely else Severity.CRITICAL
        is_severe = record.severity.rank >= least.rank and not record.severity_assumed
        for entity in find_infected(case, record) if is_severe else ():
            if not case.find_sighting(entity).well_known:
                found.setdefault(entity, reason)
    return found


def _against(conclusion: Conclusion, origin: Entity, record: IncidentRecord) -> Action:
    """Return the action to block an origin, or to keep it blocked if the SIEM has done so."""
    done = next(describe_reactions(conclusion.case, record), None)
    if done is None:
        reason = cite_records(f"({record.severity.value}) originated from this entity", [record])
        return build_action(conclusion, f"block {name_entity(origin)}", reason)
    text = f"verify that {name_entity(origin)} stays blocked"
    reason = state(
        f"incident {record.number} originated from this entity. {done.text}",
        *done.evidence,
        f"incident:{record.number}",
    )
    return build_action(conclusion, text, reason)


def _called_malicious(conclusion: Conclusion, entity: Entity) -> Statement:
    opinions = [
        opinion
        for opinion in conclusion.case.find_opinions(entity)
        if opinion.enrichment.disposition is Disposition.MALICIOUS
    ]
    sources = join_names(sorted({opinion.called for opinion in opinions}))
    return state(
        f"according to {sources}, this entity is malicious",
        *(opinion.step for opinion in opinions),
    )


def _can_be_blocked(conclusion: Conclusion, entity: Entity) -> bool:
    disputed = any(
        entity in finding.entities for finding in conclusion.select_findings("disagreement")
    )
    is_benign = conclusion.case.find_disposition(entity) is Disposition.BENIGN
    can_be = entity.kind in _BLOCKED and conclusion.case.is_outside(entity)
    is_victim = entity in conclusion.roles.victims
    return can_be and not (disputed or is_benign or is_victim)
