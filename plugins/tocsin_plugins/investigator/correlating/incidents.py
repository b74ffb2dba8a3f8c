"""The incidents themselves: what their SIEM says of those that were asked about."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import IncidentRecord, Severity, Statement
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlating.found import Found
from tocsin_plugins.investigator.seen import order
from tocsin_plugins.investigator.signs import attacks_in
from tocsin_plugins.investigator.telling import (
    alerts_told,
    happened,
    let_pass,
    reactions,
    techniques_told,
)
from tocsin_plugins.investigator.wording import say, shown

_STRENGTHS = {
    Severity.INFORMATIONAL: 0.0,
    Severity.LOW: 0.15,
    Severity.MEDIUM: 0.6,
    Severity.HIGH: 0.85,
    Severity.CRITICAL: 1.0,
}
_ASSUMED = 0.5
"""What a severity counts that is all there is, and that its SIEM did not give."""


def incidents(case: Case) -> Iterator[Found]:
    """Yield each incident that was asked about, as strong as it is severe.

    A severity that is assumed counts for half where nothing else tells of an attack.
    """
    for record in case.in_focus:
        yield Found(
            title=f"incident {record.number}: {shown(record.title) or 'it has no title'}",
            severity=record.severity,
            strength=_STRENGTHS[record.severity] * _certainty(record),
            statements=tuple(_statements(case, record)),
            entities=tuple(sorted(record.entities, key=order)),
            incidents=(record.number,),
            techniques=record.techniques,
        )


def _certainty(record: IncidentRecord) -> float:
    is_told = bool(record.techniques or attacks_in(record))
    return 1.0 if is_told or not record.severity_assumed else _ASSUMED


def _statements(case: Case, record: IncidentRecord) -> Iterator[Statement]:
    yield happened(case, record)
    yield from techniques_told(record)
    yield from alerts_told(record)
    if words := shown(record.description, 300):
        yield say(f"its description: “{words}”", f"incident:{record.number}")
    yield from let_pass(case, record)
    yield from reactions(case, record)
