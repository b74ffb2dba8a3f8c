"""Collection of evidence: questions about the named entities, and about what those lead to."""

from __future__ import annotations

from datetime import timedelta

from tocsin import Inquiry, InvestigationFailed, QueryResult, Sources
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.collection.examination import EntityExaminer
from tocsin_plugins.investigator.collection.gaps import (
    find_unknown_logons,
    note_gaps,
    suggest_spellings,
)
from tocsin_plugins.investigator.collection.patterns import resolve_patterns
from tocsin_plugins.investigator.collection.pivots import examine_named, follow_pivots
from tocsin_plugins.investigator.collection.query_client import BoundedQueryClient
from tocsin_plugins.investigator.collection.starting_point import (
    add_matching_incidents,
    choose_window,
    load_named_incidents,
)
from tocsin_plugins.investigator.interpretation import InvestigationScope
from tocsin_plugins.investigator.phrases import format_time, shorten, state
from tocsin_plugins.investigator.settings import Settings

_BEHIND = timedelta(minutes=15)  # ingestion is always a little behind
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
    client: BoundedQueryClient,
    inquiry: Inquiry,
    scope: InvestigationScope,
    settings: Settings,
    sources: QueryResult[Sources],
) -> EntityExaminer:
    """Return an examiner with the case for a query.

    Raises InvestigationFailed if a named incident does not exist.
    """
    named = await load_named_incidents(client, scope)
    window = choose_window(named.scope, named.records, inquiry.asked_at, settings)
    scope, gaps = await resolve_patterns(client, named.scope, window)
    case = CaseFile(scope, window, settings.everywhere, settings.between_steps)
    case.gaps += [*named.gaps, *gaps]
    for record in named.records:
        case.add_incident(record)
    provider = inquiry.provider or scope.provider
    available = sources.content or Sources(providers=(), enrichers=())
    if not case.scope.is_specific and not case.scope.is_empty:
        await add_matching_incidents(client, case, provider, inquiry.session_id)
    examiner = EntityExaminer(client, case, available, settings, provider, sources.step)
    await examine_named(examiner)
    await suggest_spellings(examiner)
    _note_providers(examiner, sources.step)
    return examiner


def check_availability(examiner: EntityExaminer) -> None:
    """Raise InvestigationFailed if all required providers are unavailable."""
    asked = [
        provider
        for provider in examiner.selected_providers
        if provider.answers_events or provider.reason
    ]
    silent = examiner.client.away()
    reasons = {
        provider.name: provider.reason or silent.get(f"provider:{provider.name}")
        for provider in asked
    }
    if reasons and all(reasons.values()):
        each = "; ".join(
            f"{name}: {shorten(reason or '', 300)}" for name, reason in reasons.items()
        )
        raise InvestigationFailed(f"all required providers are unavailable ({each})")


def silent_sources(examiner: EntityExaminer) -> frozenset[str]:
    """Return the sources that left a question unanswered or are not running."""
    absent = {
        f"provider:{provider.name}" for provider in examiner.selected_providers if provider.reason
    }
    return frozenset(absent | examiner.client.unavailable().keys())


def needed_sources(examiner: EntityExaminer) -> frozenset[str]:
    """Return the required providers.

    They are the one that the query names, or those of the incidents in focus, or all.
    """
    providers = {record.provider for record in examiner.case.in_focus}
    names = (
        {examiner.provider}
        if examiner.provider
        else providers or {provider.name for provider in examiner.selected_providers}
    )
    return frozenset(f"provider:{name}" for name in names)


def _note_providers(examiner: EntityExaminer, step: str) -> None:
    """Note as gaps the providers that are not running or cannot search for events."""
    providers = examiner.selected_providers
    gaps = examiner.case.gaps
    if not providers:
        gaps.append(state("no provider is available that can search for events", step))
    for provider in providers:
        if provider.reason:
            text = f"provider {provider.name} is not running: {shorten(provider.reason, 300)}"
            gaps.append(state(text, step))
        elif not provider.answers_events:
            gaps.append(state(f"provider {provider.name} cannot search for events", step))
        if provider.read_until and examiner.case.window.end - provider.read_until > _BEHIND:
            until = format_time(provider.read_until)
            text = f"Tocsin has read incidents from provider {provider.name} only up to {until}"
            gaps.append(state(text, step))
