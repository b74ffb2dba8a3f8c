"""Findings for the incidents that were asked about."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import IncidentRecord, Severity, Statement
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.correlation.drafts import FindingDraft
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.narrative import (
    describe_alerts,
    describe_incident,
    describe_pass,
    describe_reactions,
    describe_techniques,
)
from tocsin_plugins.investigator.phrases import shorten, state
from tocsin_plugins.investigator.signs import find_attacks

_STRENGTHS = {
    Severity.INFORMATIONAL: 0.0,
    Severity.LOW: 0.15,
    Severity.MEDIUM: 0.6,
    Severity.HIGH: 0.85,
    Severity.CRITICAL: 1.0,
}
_ASSUMED = 0.5
"""The factor of an assumed severity without other signs of an attack."""


def describe_incidents(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each incident in focus, as strong as it is severe.

    An assumed severity counts half without other signs of an attack.
    """
    for record in case.in_focus:
        yield FindingDraft(
            title=f"incident {record.number}: {shorten(record.title) or 'untitled'}",
            severity=record.severity,
            strength=_STRENGTHS[record.severity] * _certainty(record),
            statements=tuple(_statements(case, record)),
            entities=tuple(sorted(record.entities, key=entity_sort_key)),
            incidents=(record.number,),
            techniques=record.techniques,
        )


def _certainty(record: IncidentRecord) -> float:
    is_told = bool(record.techniques or find_attacks(record))
    return 1.0 if is_told or not record.severity_assumed else _ASSUMED


def _statements(case: CaseFile, record: IncidentRecord) -> Iterator[Statement]:
    yield describe_incident(case, record)
    yield from describe_techniques(record)
    yield from describe_alerts(record)
    if description := shorten(record.description, 300).rstrip("."):
        yield state(f"description: “{description}”", f"incident:{record.number}")
    yield from describe_pass(case, record)
    yield from describe_reactions(case, record)
