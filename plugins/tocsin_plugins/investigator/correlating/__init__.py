"""Correlating: rules over what was gathered. Each is a pure function from the case to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tocsin import Finding
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlating.agreement import agreements, disagreements
from tocsin_plugins.investigator.correlating.callbacks import callbacks
from tocsin_plugins.investigator.correlating.explanations import (
    background_noise,
    benign_explanations,
    internal_only,
)
from tocsin_plugins.investigator.correlating.found import Found
from tocsin_plugins.investigator.correlating.incidents import incidents
from tocsin_plugins.investigator.correlating.lateral import lateral_movement
from tocsin_plugins.investigator.correlating.logons import success_after_failures
from tocsin_plugins.investigator.correlating.nearness import Focus
from tocsin_plugins.investigator.correlating.novelty import first_seen, rare_entities
from tocsin_plugins.investigator.correlating.reputation import bad_reputation
from tocsin_plugins.investigator.correlating.rhythm import bursts, recurrences
from tocsin_plugins.investigator.correlating.sequences import attack_sequences
from tocsin_plugins.investigator.correlating.sharing import shared_entities
from tocsin_plugins.investigator.correlating.vulnerabilities import exploited_cves
from tocsin_plugins.investigator.seen import order
from tocsin_plugins.investigator.wording import counted, say, sentence

__all__ = ["RULES", "Weighed", "correlate"]

RULES: Mapping[str, Callable[[Case], Iterable[Found]]] = MappingProxyType(
    {
        "incident": incidents,
        "success-after-failures": success_after_failures,
        "attack-sequence": attack_sequences,
        "callback": callbacks,
        "lateral-movement": lateral_movement,
        "exploited-cve": exploited_cves,
        "reputation": bad_reputation,
        "agreement": agreements,
        "disagreement": disagreements,
        "shared-entity": shared_entities,
        "recurrence": recurrences,
        "burst": bursts,
        "first-seen": first_seen,
        "rare-entity": rare_entities,
        "benign-explanation": benign_explanations,
        "background-noise": background_noise,
        "internal-only": internal_only,
    }
)
"""Every rule by the kind of finding that it makes, the most telling first."""
_MOST_OF_A_KIND = 10


@dataclass(frozen=True, slots=True)
class Weighed:
    """A finding, and how much of its rule's weight it counts for."""

    finding: Finding
    strength: float
    is_near: bool
    """Whether it is not about what was asked, but about what was found near it."""


def correlate(case: Case) -> list[Weighed]:
    """Return what the rules find, what was asked about and the worst first.

    What is too much of a kind is noted as a gap. Where only what was named is wanted, what was
    found near it is left out.
    """
    focus = Focus.of(case)
    drafts = []
    for place, (kind, rule) in enumerate(RULES.items()):
        wanted = (it for it in rule(case) if not (case.scope.narrowed and focus.is_near(it)))
        found = sorted(wanted, key=lambda it: (focus.is_near(it), *_order(it)))
        drafts += [(place, kind, draft) for draft in found[:_MOST_OF_A_KIND]]
        if left := found[_MOST_OF_A_KIND:]:
            number = counted(len(left), "more finding")
            text = f"not listed of the kind {kind}: {number}"
            case.gaps.append(say(text, *left[0].statements[0].evidence))
    drafts.sort(key=lambda it: (focus.is_near(it[2]), -it[2].severity.rank, it[0], _order(it[2])))
    return [
        Weighed(_finding(f"F{number}", kind, draft), draft.strength, focus.is_near(draft))
        for number, (_, kind, draft) in enumerate(drafts, 1)
    ]


def _order(draft: Found) -> tuple[object, ...]:
    return -draft.severity.rank, -draft.strength, draft.title, tuple(map(order, draft.entities))


def _finding(identifier: str, kind: str, draft: Found) -> Finding:
    return Finding(
        id=identifier,
        kind=kind,
        title=sentence(draft.title).rstrip("."),
        severity=draft.severity,
        statements=draft.statements,
        entities=draft.entities,
        incidents=draft.incidents,
        techniques=draft.techniques,
    )
