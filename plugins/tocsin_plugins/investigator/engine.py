"""The engine: six phases, one after the other, each in a room of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Contribution, Desk, Inquiry, Investigator, Phase, Report, Statement, WhoIsThere
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.conclusion import Conclusion
from tocsin_plugins.investigator.correlating import Weighed, correlate
from tocsin_plugins.investigator.gathering import (
    Asking,
    Examiner,
    check_availability,
    follow,
    gather,
    needed_sources,
    note_what_is_not_known,
    silent_sources,
)
from tocsin_plugins.investigator.reporting import compose
from tocsin_plugins.investigator.scoring import confidence_in, contributions, total, verdict_of
from tocsin_plugins.investigator.settings import Settings as InvestigatorSettings
from tocsin_plugins.investigator.understanding import Scope, understand
from tocsin_plugins.investigator.wording import asked_called, cited, say, sentence, together

_NOTHING = "nothing to hold on to was found in the query"


class DefaultInvestigator(Investigator):
    """Follows rules: the same inquiry and the same answers make the same report."""

    class Settings(InvestigatorSettings):
        """What the default investigator can be told."""

    settings: InvestigatorSettings

    async def investigate(self, inquiry: Inquiry, desk: Desk) -> Report:
        """Return what there is to say.

        Raises InvestigationFailed where an incident that is named does not exist, or all providers
        that are needed are away.
        """
        desk.enter(Phase.UNDERSTAND)
        bounds = self.settings.bounds[inquiry.persona]
        asking = Asking(desk, bounds)
        sources = await asking.ask(WhoIsThere())
        providers = [it.name for it in sources.content.providers] if sources.content else []
        scope = understand(inquiry.messages, inquiry.asked_at, providers)
        understood = [await desk.conclude(sentence(note), ()) for note in _notes(scope)]
        desk.enter(Phase.GATHER)
        asking.bounds = bounds.deepened(scope.deeper)
        examiner = await gather(asking, inquiry, scope, self.settings, sources)
        if not examiner.case.scope.is_empty:
            check_availability(examiner)
        desk.enter(Phase.PIVOT)
        await follow(examiner)
        note_what_is_not_known(examiner)
        desk.enter(Phase.CORRELATE)
        findings = correlate(examiner.case)
        for weighed in findings:
            await desk.conclude(sentence(weighed.finding.title), _evidence_of(weighed))
        conclusion = await self._judge(inquiry, desk, examiner, findings, understood)
        desk.enter(Phase.REPORT)
        return compose(conclusion)

    async def _judge(
        self,
        inquiry: Inquiry,
        desk: Desk,
        examiner: Examiner,
        findings: Sequence[Weighed],
        understood: Sequence[str],
    ) -> Conclusion:
        desk.enter(Phase.SCORE)
        case, asking = examiner.case, examiner.asking
        parts = contributions(findings, self.settings)
        score = total(parts)
        verdict = verdict_of(score, findings)
        silent, needed = silent_sources(examiner), needed_sources(examiner)
        confidence = confidence_in(verdict, case, findings, silent=silent, needed=needed)
        text = (
            f"The risk score is {score:g} of 100: {verdict.value}, {confidence.value} confidence."
        )
        return Conclusion(
            inquiry=inquiry,
            case=case,
            bounds=asking.bounds,
            findings=tuple(weighed.finding for weighed in findings),
            near=frozenset(weighed.finding.id for weighed in findings if weighed.is_near),
            contributions=parts,
            score=score,
            verdict=verdict,
            confidence=confidence,
            gaps=_gaps(case, asking, understood),
            understood=tuple(understood),
            scored=await desk.conclude(text, _evidence_for(parts)),
        )


def _notes(scope: Scope) -> tuple[str, ...]:
    notes = (*scope.notes, *scope.doubts)
    return (*notes, _NOTHING) if scope.is_empty else notes or ("incidents in general are meant",)


def _evidence_of(weighed: Weighed) -> list[str]:
    return cited(it for statement in weighed.finding.statements for it in statement.evidence)


def _evidence_for(parts: Sequence[Contribution]) -> list[str]:
    return cited(it for part in parts for it in part.statement.evidence)


def _gaps(case: Case, asking: Asking, understood: Sequence[str]) -> tuple[Statement, ...]:
    """Return what was not understood, not asked, not answered, and not told in full."""
    doubts = [say(doubt, *understood) for doubt in case.scope.doubts]
    truncated = [
        say(
            f"{asked_called(asked_of)} has more than was asked for of "
            f"{together(it for it, _ in told)}",
            *(step for _, step in told),
        )
        for asked_of, told in sorted(case.truncated.items())
    ]
    return (*doubts, *asking.gaps(), *case.gaps, *truncated)
