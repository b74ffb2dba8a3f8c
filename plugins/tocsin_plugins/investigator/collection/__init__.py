"""Collection of evidence: questions about the named entities, and about what those lead to."""

from __future__ import annotations

from datetime import timedelta

from tocsin import Inquiry, InvestigationFailed, QueryResult, Sources
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.collection.examination import EntityExaminer
from tocsin_plugins.investigator.collection.gaps import (
    find_unknown_logons,
    note_gaps,
    suggest_spellings,
)
from tocsin_plugins.investigator.collection.pivots import examine_named, follow_pivots
from tocsin_plugins.investigator.collection.query_client import BoundedQueryClient
from tocsin_plugins.investigator.collection.starting_point import (
    add_matching_incidents,
    choose_window,
    load_named_incidents,
)
from tocsin_plugins.investigator.interpretation import InvestigationScope
from tocsin_plugins.investigator.phrases import at, say, shown
from tocsin_plugins.investigator.settings import Settings

_BEHIND = timedelta(minutes=15)  # reading is always a little behind
__all__ = [
    "BoundedQueryClient",
    "EntityExaminer",
    "check_availability",
    "find_unknown_logons",
    "follow_pivots",
    "gather",
    "needed_sources",
    "note_gaps",
    "silent_sources",
]


async def gather(
    asking: BoundedQueryClient,
    inquiry: Inquiry,
    scope: InvestigationScope,
    settings: Settings,
    sources: QueryResult[Sources],
) -> EntityExaminer:
    """Return the case with all that is known of what was asked about.

    Raises InvestigationFailed where an incident that is named does not exist.
    """
    named = await load_named_incidents(asking, scope)
    window = choose_window(named.scope, named.records, inquiry.asked_at, settings)
    case = Case(named.scope, window, settings.everywhere, settings.between_steps)
    case.gaps += named.gaps
    for record in named.records:
        case.add_incident(record)
    provider = inquiry.provider or scope.provider
    there = sources.content or Sources(providers=(), enrichers=())
    if not case.scope.is_specific and not case.scope.is_empty:
        await add_matching_incidents(asking, case, provider, inquiry.session_id)
    examiner = EntityExaminer(asking, case, there, settings, provider, sources.step)
    await examine_named(examiner)
    await suggest_spellings(examiner)
    _note_providers(examiner, sources.step)
    return examiner


def check_availability(examiner: EntityExaminer) -> None:
    """Raise InvestigationFailed where all providers that are needed are away."""
    asked = [it for it in examiner.meant if it.answers_events or it.reason]
    silent = examiner.asking.away()
    reasons = {it.name: it.reason or silent.get(f"provider:{it.name}") for it in asked}
    if reasons and all(reasons.values()):
        each = "; ".join(f"{name}: {shown(reason or '', 300)}" for name, reason in reasons.items())
        raise InvestigationFailed(f"every provider that is needed is unavailable ({each})")


def silent_sources(examiner: EntityExaminer) -> frozenset[str]:
    """Return who did not answer, be it once, or is not there at all."""
    absent = {f"provider:{it.name}" for it in examiner.meant if it.reason}
    return frozenset(absent | examiner.asking.unavailable().keys())


def needed_sources(examiner: EntityExaminer) -> frozenset[str]:
    """Return the providers that cannot be done without.

    They are the one that is named, else those of the incidents asked about, else all.
    """
    told = {record.provider for record in examiner.case.in_focus}
    names = {examiner.provider} if examiner.provider else told or {it.name for it in examiner.meant}
    return frozenset(f"provider:{name}" for name in names)


def _note_providers(examiner: EntityExaminer, step: str) -> None:
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
