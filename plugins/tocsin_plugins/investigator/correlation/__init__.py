"""Correlation rules over a case; each is a pure function from the case to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tocsin import Finding
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.correlation.connections import (
    find_callbacks,
    find_lateral_movement,
)
from tocsin_plugins.investigator.correlation.drafts import CaseFocus, FindingDraft
from tocsin_plugins.investigator.correlation.explanations import (
    find_background_noise,
    find_benign_explanations,
    find_internal_only,
)
from tocsin_plugins.investigator.correlation.frequency import (
    find_bursts,
    find_first_seen,
    find_rare_entities,
    find_recurrences,
    find_shared_entities,
)
from tocsin_plugins.investigator.correlation.incidents import describe_incidents
from tocsin_plugins.investigator.correlation.logons import find_success_after_failures
from tocsin_plugins.investigator.correlation.reputation import (
    find_agreements,
    find_bad_reputation,
    find_disagreements,
    find_exploited_cves,
    state_opinion,
)
from tocsin_plugins.investigator.correlation.sequences import find_attack_sequences
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.phrases import IS, count_noun, state, to_sentence

__all__ = ["RULES", "WeightedFinding", "correlate", "state_opinion"]

RULES: Mapping[str, Callable[[CaseFile], Iterable[FindingDraft]]] = MappingProxyType(
    {
        "incident": describe_incidents,
        "success-after-failures": find_success_after_failures,
        "attack-sequence": find_attack_sequences,
        "callback": find_callbacks,
        "lateral-movement": find_lateral_movement,
        "exploited-cve": find_exploited_cves,
        "reputation": find_bad_reputation,
        "agreement": find_agreements,
        "disagreement": find_disagreements,
        "shared-entity": find_shared_entities,
        "recurrence": find_recurrences,
        "burst": find_bursts,
        "first-seen": find_first_seen,
        "rare-entity": find_rare_entities,
        "benign-explanation": find_benign_explanations,
        "background-noise": find_background_noise,
        "internal-only": find_internal_only,
    }
)
"""Every rule by the kind of its findings, the most significant first."""
_MOST_OF_A_KIND = 10


@dataclass(frozen=True, slots=True)
class WeightedFinding:
    """A finding with the share of its rule's weight that it counts for."""

    finding: Finding
    strength: float
    is_near: bool
    """Whether it is outside the query, but related to it."""


def correlate(case: CaseFile) -> list[WeightedFinding]:
    """Return the findings of all rules, those on the query and the worst first.

    Findings beyond the maximum of a kind are noted as a gap. Related findings are left out if the
    query asks only for what it names.
    """
    focus = CaseFocus.of(case)
    drafts = []
    for place, (kind, rule) in enumerate(RULES.items()):
        wanted = (
            draft for draft in rule(case) if not (case.scope.narrowed and focus.is_near(draft))
        )
        found = sorted(wanted, key=lambda draft: (focus.is_near(draft), *_draft_sort_key(draft)))
        drafts += [(place, kind, draft) for draft in found[:_MOST_OF_A_KIND]]
        if left := found[_MOST_OF_A_KIND:]:
            number = count_noun(len(left), "more finding")
            text = f"{number} of the kind {kind} {IS[len(left) == 1]} not listed"
            case.gaps.append(state(text, *left[0].statements[0].evidence))
    drafts.sort(
        key=lambda entry: (
            focus.is_near(entry[2]),
            -entry[2].severity.rank,
            entry[0],
            _draft_sort_key(entry[2]),
        )
    )
    return [
        WeightedFinding(
            _build_finding(f"F{number}", kind, draft), draft.strength, focus.is_near(draft)
        )
        for number, (_, kind, draft) in enumerate(drafts, 1)
    ]


def _draft_sort_key(draft: FindingDraft) -> tuple[object, ...]:
    return (
        -draft.severity.rank,
        -draft.strength,
        draft.title,
        tuple(map(entity_sort_key, draft.entities)),
    )


def _build_finding(identifier: str, kind: str, draft: FindingDraft) -> Finding:
    return Finding(
        id=identifier,
        kind=kind,
        title=to_sentence(draft.title).rstrip("."),
        severity=draft.severity,
        statements=draft.statements,
        entities=draft.entities,
        incidents=draft.incidents,
        techniques=draft.techniques,
    )
