"""Report composition: fixed sentences with values filled in, each with its evidence."""

from __future__ import annotations

from dataclasses import replace

from tocsin import Report, sort_tactics
from tocsin_plugins.attack import TACTICS, find_tactics
from tocsin_plugins.investigator.assessment import Conclusion
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.phrases import count_noun, state
from tocsin_plugins.investigator.report.actions import build_actions
from tocsin_plugins.investigator.report.entities import build_assessments, build_relations
from tocsin_plugins.investigator.report.reply import build_reply
from tocsin_plugins.investigator.report.sections import SECTIONS
from tocsin_plugins.investigator.report.summary import build_summary, build_title
from tocsin_plugins.investigator.report.timeline import build_timeline

__all__ = ["build_report"]


def build_report(conclusion: Conclusion) -> Report:
    """Return the report of an investigation."""
    case, inquiry = conclusion.case, conclusion.inquiry
    lines, left = build_timeline(case, conclusion.bounds.timeline)
    if left:
        gap = state(f"the timeline omits {count_noun(left, 'line')}", conclusion.scored)
        conclusion = replace(conclusion, gaps=(*conclusion.gaps, gap))
    report = Report(
        title=build_title(conclusion),
        query=inquiry.messages[0] if inquiry.messages else "",
        persona=inquiry.persona,
        window=case.window,
        verdict=conclusion.verdict,
        confidence=conclusion.confidence,
        risk_score=conclusion.score,
        summary=build_summary(conclusion),
        contributions=conclusion.contributions,
        timeline=lines,
        findings=conclusion.findings,
        entities=build_assessments(case),
        relations=build_relations(case),
        incidents=tuple(sorted(case.incidents)),
        about=tuple(incident for incident in case.scope.incidents if incident in case.incidents),
        techniques=_techniques(case),
        tactics=_collect_tactics(case),
        gaps=conclusion.gaps,
        actions=build_actions(conclusion),
        sections=SECTIONS[inquiry.persona],
    )
    return replace(report, reply=build_reply(conclusion, report))


def _techniques(case: CaseFile) -> tuple[str, ...]:
    """Return the techniques of the incidents and opinions, in the order of their tactics."""
    found = {technique for record in case.records for technique in record.techniques}
    found |= {technique for opinion in case.opinions for technique in opinion.enrichment.techniques}
    return tuple(sorted(found, key=lambda technique: (_place(technique), technique)))


def _collect_tactics(case: CaseFile) -> tuple[str, ...]:
    """Return the tactics that the SIEM names for the incidents, in the order of an attack."""
    return tuple(sort_tactics(tactic for record in case.records for tactic in record.tactics))


def _place(technique: str) -> int:
    tactics = find_tactics(technique)
    return TACTICS.index(tactics[0]) if tactics else len(TACTICS)
