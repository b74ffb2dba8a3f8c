"""Callbacks: something of ours that contacted what sources call malicious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tocsin import Disposition, Entity, RelationType, Severity
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlating.found import FindingDraft, grade_strength
from tocsin_plugins.investigator.seen import SeenRelation, cite_steps, entity_sort_key
from tocsin_plugins.investigator.signs import AttackSign
from tocsin_plugins.investigator.wording import counted, listed, named, say

_CONTACTS = frozenset(
    {
        RelationType.CONNECTED_TO,
        RelationType.DOWNLOADED_FROM,
        RelationType.RESOLVES_TO,
        RelationType.SENT_TO,
        RelationType.STARTED,
    }
)
_CALLBACK_STRENGTHS = {1: 0.8, 2: 1.0}


def find_callbacks(case: Case) -> Iterator[FindingDraft]:
    """Yield each malicious entity that hosts or addresses of ours went to."""
    for target in case.entities:
        if case.find_disposition(target) is not Disposition.MALICIOUS or case.is_ours(target):
            continue
        contacts = _contacts(case, target)
        if strength := grade_strength(len(contacts), _CALLBACK_STRENGTHS):
            ours = sorted(contacts, key=entity_sort_key)
            evidence = sorted({step for steps in contacts.values() for step in steps})
            who = listed([named(entity) for entity in ours])
            yield FindingDraft(
                title=f"{counted(len(ours), 'entity', 'entities')} of ours contacted "
                f"{named(target)}, which is called malicious",
                severity=Severity.HIGH,
                strength=strength,
                statements=(say(f"{who} contacted {named(target)}", *evidence),),
                entities=(target, *ours),
                incidents=tuple(record.number for record in case.incidents_with(target)),
            )


def _contacts(case: Case, target: Entity) -> dict[Entity, list[str]]:
    """Return what of ours went to the target, and the steps that tell it."""
    contacts: defaultdict[Entity, list[str]] = defaultdict(list)
    for seen in case.relations_to(target):
        if _is_contact(case, seen):
            contacts[seen.relation.source] += cite_steps([seen])
    for event in case.events_with(target):
        if AttackSign.CALLBACK in event.signs:
            for entity in event.event.entities:
                if case.is_ours(entity):
                    contacts[entity].append(event.step)
    return dict(contacts)


def _is_contact(case: Case, seen: SeenRelation) -> bool:
    return seen.relation.type in _CONTACTS and case.is_ours(seen.relation.source)
