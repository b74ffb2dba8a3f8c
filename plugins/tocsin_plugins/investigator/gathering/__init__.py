"""Gathering: asking for what is known, and for what that leads to."""

from __future__ import annotations

from datetime import timedelta

from tocsin import Answered, Inquiry, InvestigationFailed, Sources
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.gathering.asking import Asking
from tocsin_plugins.investigator.gathering.incidents import add_found, named_incidents
from tocsin_plugins.investigator.gathering.lacking import logons_unknown, note_what_is_not_known
from tocsin_plugins.investigator.gathering.pivoting import begin, follow
from tocsin_plugins.investigator.gathering.rounds import Examiner
from tocsin_plugins.investigator.gathering.spellings import suggest_spellings
from tocsin_plugins.investigator.gathering.windows import window_for
from tocsin_plugins.investigator.settings import Settings
from tocsin_plugins.investigator.understanding import Scope
from tocsin_plugins.investigator.wording import at, say, shown

_BEHIND = timedelta(minutes=15)  # reading is always a little behind
__all__ = [
    "Asking",
    "Examiner",
    "check_availability",
    "follow",
    "gather",
    "logons_unknown",
    "needed_sources",
    "note_what_is_not_known",
    "silent_sources",
]


async def gather(
    asking: Asking, inquiry: Inquiry, scope: Scope, settings: Settings, sources: Answered[Sources]
) -> Examiner:
    """Return the case with all that is known of what was asked about.

    Raises InvestigationFailed where an incident that is named does not exist.
    """
    named = await named_incidents(asking, scope)
    window = window_for(named.scope, named.records, inquiry.asked_at, settings)
    case = Case(named.scope, window, settings.everywhere, settings.between_steps)
    case.gaps += named.gaps
    for record in named.records:
        case.add_incident(record)
    provider = inquiry.provider or scope.provider
    there = sources.content or Sources(providers=(), enrichers=())
    if not case.scope.is_specific and not case.scope.is_empty:
        await add_found(asking, case, provider, inquiry.session_id)
    examiner = Examiner(asking, case, there, settings, provider, sources.step)
    await begin(examiner)
    await suggest_spellings(examiner)
    _note_providers(examiner, sources.step)
    return examiner


def check_availability(examiner: Examiner) -> None:
    """Raise InvestigationFailed where all providers that are needed are away."""
    asked = [it for it in examiner.meant if it.answers_events or it.reason]
    silent = examiner.asking.away()
    reasons = {it.name: it.reason or silent.get(f"provider:{it.name}") for it in asked}
    if reasons and all(reasons.values()):
        each = "; ".join(f"{name}: {shown(reason or '', 300)}" for name, reason in reasons.items())
        raise InvestigationFailed(f"every provider that is needed is unavailable ({each})")


def silent_sources(examiner: Examiner) -> frozenset[str]:
    """Return who did not answer, be it once, or is not there at all."""
    absent = {f"provider:{it.name}" for it in examiner.meant if it.reason}
    return frozenset(absent | examiner.asking.unavailable().keys())


def needed_sources(examiner: Examiner) -> frozenset[str]:
    """Return the providers that cannot be done without.

    They are the one that is named, else those of the incidents asked about, else all.
    """
    told = {record.provider for record in examiner.case.in_focus}
    names = {examiner.provider} if examiner.provider else told or {it.name for it in examiner.meant}
    return frozenset(f"provider:{name}" for name in names)


def _note_providers(examiner: Examiner, step: str) -> None:
    """Note as gaps which providers are not there, and which cannot be asked for events."""
    meant = examiner.meant
    gaps = examiner.case.gaps
    if not meant:
        gaps.append(say("there is no provider that could be asked for events", step))
    for provider in meant:
        if provider.reason:
            text = f"the provider {provider.name} is not there: {shown(provider.reason, 300)}"
            gaps.append(say(text, step))
        elif not provider.answers_events:
            gaps.append(say(f"the provider {provider.name} cannot be asked for events", step))
        if provider.read_until and examiner.case.window.end - provider.read_until > _BEHIND:
            until = at(provider.read_until)
            text = f"the incidents of the provider {provider.name} were read up to {until} only"
            gaps.append(say(text, step))
