"""Engine of the default investigator: six phases in sequence."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import (
    Inquiry,
    Investigator,
    ListSources,
    Phase,
    QueryClient,
    Report,
    Statement,
)
from tocsin_plugins.investigator.assessment import (
    Conclusion,
    judge_confidence,
    judge_verdict,
    score_worst,
    total_score,
)
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.collection import (
    BoundedQueryClient,
    EntityExaminer,
    check_availability,
    follow_pivots,
    gather,
    needed_sources,
    note_gaps,
    silent_sources,
)
from tocsin_plugins.investigator.correlation import WeightedFinding, correlate
from tocsin_plugins.investigator.evidence import list_evidence
from tocsin_plugins.investigator.interpretation import InvestigationScope, interpret_messages
from tocsin_plugins.investigator.phrases import (
    join_entities,
    name_source,
    sort_references,
    state,
    to_sentence,
)
from tocsin_plugins.investigator.report import build_report
from tocsin_plugins.investigator.roles import assign_roles
from tocsin_plugins.investigator.settings import Settings as InvestigatorSettings

_NOTHING = "the question does not say what to investigate"
_GENERAL = "the question asks for incidents in general"


class DefaultInvestigator(Investigator[InvestigatorSettings]):
    """Investigates by fixed rules, so the same question and data produce the same report."""

    async def investigate(self, inquiry: Inquiry, client: QueryClient) -> Report:
        """Return the report of an inquiry.

        Raises InvestigationFailed if a named incident does not exist or all required providers are
        unavailable.
        """
        client.enter(Phase.UNDERSTAND)
        bounds = self.settings.bounds[inquiry.persona]
        queries = BoundedQueryClient(client, bounds)
        sources = await queries.ask(ListSources())
        providers = (
            [provider.name for provider in sources.content.providers] if sources.content else []
        )
        scope = interpret_messages(inquiry.messages, inquiry.asked_at, providers)
        understood = [await client.conclude(to_sentence(note), ()) for note in _notes(scope)]
        client.enter(Phase.GATHER)
        queries.bounds = bounds.deepened(scope.deeper)
        examiner = await gather(queries, inquiry, scope, self.settings, sources)
        if not examiner.case.scope.is_empty:
            check_availability(examiner)
        client.enter(Phase.PIVOT)
        await follow_pivots(examiner)
        note_gaps(examiner)
        client.enter(Phase.CORRELATE)
        findings = correlate(examiner.case)
        for weighed in findings:
            evidence = sort_references(list_evidence(weighed.finding.statements))
            await client.conclude(to_sentence(weighed.finding.title), evidence)
        conclusion = await self._judge(inquiry, client, examiner, findings, understood)
        client.enter(Phase.REPORT)
        return build_report(conclusion)

    async def _judge(
        self,
        inquiry: Inquiry,
        client: QueryClient,
        examiner: EntityExaminer,
        findings: Sequence[WeightedFinding],
        understood: Sequence[str],
    ) -> Conclusion:
        client.enter(Phase.SCORE)
        case, queries = examiner.case, examiner.client
        parts, attackers = score_worst(findings, case, self.settings)
        score = total_score(parts)
        verdict = judge_verdict(score, findings)
        silent, needed = silent_sources(examiner), needed_sources(examiner)
        confidence = judge_confidence(
            verdict,
            case,
            findings,
            silent=silent,
            needed=needed,
            names_networks=examiner.sources.names_networks,
        )
        text = (
            f"The risk score is {score:g} out of 100, and the verdict is {verdict.value} with "
            f"{confidence.value} confidence."
        )
        evidence = sort_references(list_evidence(part.statement for part in parts))
        return Conclusion(
            inquiry=inquiry,
            case=case,
            bounds=queries.bounds,
            roles=assign_roles(case),
            findings=tuple(weighed.finding for weighed in findings),
            near=frozenset(weighed.finding.id for weighed in findings if weighed.is_near),
            contributions=parts,
            attackers=attackers,
            score=score,
            verdict=verdict,
            confidence=confidence,
            gaps=_gaps(case, queries, understood),
            understood=tuple(understood),
            scored=await client.conclude(text, evidence),
        )


def _notes(scope: InvestigationScope) -> tuple[str, ...]:
    notes = (*scope.notes, *scope.doubts)
    return (*notes, _NOTHING) if scope.is_empty else notes or (_GENERAL,)


def _gaps(
    case: CaseFile, queries: BoundedQueryClient, understood: Sequence[str]
) -> tuple[Statement, ...]:
    """Return everything that was not understood, asked, answered or reported in full."""
    doubts = [state(doubt, *understood) for doubt in case.scope.doubts]
    truncated = [
        state(
            f"{name_source(asked_of)} has more results for "
            f"{join_entities(entity for entity, _ in cut)} than the limit allows",
            *(step for _, step in cut),
        )
        for asked_of, cut in sorted(case.truncated.items())
    ]
    return (*doubts, *queries.gaps(), *case.gaps, *truncated)
