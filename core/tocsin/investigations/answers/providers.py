"""Event search at providers; an unavailable, slow or broken one costs only its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta

import structlog

from tocsin.errors import Misconfigured, PluginFailure, Refused
from tocsin.hookspecs import Capability, Provider
from tocsin.investigations.answers.reply import SourceReply
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.model import FindEvents, FoundEvents, ProviderSource, QueryOutcome, SiemEvent

PROVIDER_TIMEOUT = timedelta(seconds=120)
_log = structlog.get_logger()


class ProviderEventSearch:
    """The providers of this service, those that are left out included."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        absent: Mapping[str, str],
        timeout: timedelta = PROVIDER_TIMEOUT,
    ) -> None:
        """Take the providers that are there, and why each of the others is not."""
        self._providers = providers
        self._absent = absent
        self._timeout = timeout.total_seconds()

    def sources(self) -> tuple[ProviderSource, ...]:
        """Return who may be asked, by name."""
        there = [
            ProviderSource(
                name=name,
                answers_events=Capability.EVENTS in it.capabilities(),
                event_kinds=tuple(sorted(it.event_kinds)),
                marking=it.settings.marking,
            )
            for name, it in self._providers.items()
        ]
        away = [
            ProviderSource(name=name, answers_events=False, reason=reason)
            for name, reason in self._absent.items()
            if name not in self._providers
        ]
        return tuple(sorted(there + away, key=lambda source: source.name))

    async def ask(self, question: FindEvents) -> SourceReply:
        """Return the events that a provider finds, the earliest first."""
        provider = self._providers.get(question.provider)
        if provider is None:
            return self._nobody(question.provider)
        if Capability.EVENTS not in provider.capabilities():
            return SourceReply(QueryOutcome.REFUSED, reason="its plugin cannot search for events")
        if question.entity.kind not in provider.event_kinds:
            words = f"it cannot be asked for events of a {question.entity.kind}"
            return SourceReply(QueryOutcome.REFUSED, reason=words)
        found: list[SiemEvent] = []
        try:
            async with asyncio.timeout(self._timeout) as limit:
                await _find(provider, question, found)
        except PLUGIN_FAILURES as error:
            if was_cancelled():
                raise
            late = f"it did not answer within {self._timeout:g} seconds"
            why = _unavailable(late) if limit.expired() else _failed(question.provider, error)
            return _in_part(found, question, why) if found else why
        return SourceReply(QueryOutcome.ANSWERED, _latest(found, question))

    def _nobody(self, name: str) -> SourceReply:
        if name in self._absent:
            return _unavailable(f"it is left out: {self._absent[name]}")
        return SourceReply(QueryOutcome.REFUSED, reason="there is no such provider")


async def _find(provider: Provider, question: FindEvents, found: list[SiemEvent]) -> None:
    """Add the latest events to those found: one more than is wanted tells that there are more."""
    finding = provider.events(question.entity, question.window, question.limit + 1)
    async with aclosing(finding) as events:
        async for event in events:
            _check(event)
            found.append(event)
            if len(found) > question.limit:
                break


def _check(event: object) -> None:
    """Raise TypeError or ValueError where it cannot be put in order with others."""
    if not isinstance(event, SiemEvent) or not isinstance(event.external_id, str | None):
        raise TypeError(f"yield events with text as their identifiers, not {event!r:.200}")
    if event.occurred_at.utcoffset() is None:
        raise ValueError(f"an event's time needs a zone: {event.occurred_at!r}")


def _latest(found: list[SiemEvent], question: FindEvents) -> FoundEvents:
    found.sort(key=lambda event: (event.occurred_at, event.external_id or ""))
    complete = len(found) <= question.limit
    return FoundEvents(events=tuple(found[-question.limit :]), complete=complete)


def _in_part(found: list[SiemEvent], question: FindEvents, why: SourceReply) -> SourceReply:
    """Return what was found before it failed, and why there may be more."""
    part = replace(_latest(found, question), complete=False)
    return SourceReply(QueryOutcome.ANSWERED, part, why.reason)


def _failed(name: str, error: BaseException) -> SourceReply:
    if isinstance(error, Misconfigured):  # nothing can be had there until someone mends that
        return _unavailable(str(error))
    if isinstance(error, Refused):
        return SourceReply(QueryOutcome.REFUSED, reason=str(error))
    if isinstance(error, PluginFailure | OSError):
        return _unavailable(str(error))
    _log.error("a provider failed to find events", provider=name, exc_info=error)
    return _unavailable(f"its plugin failed ({type(error).__name__})")


def _unavailable(reason: str) -> SourceReply:
    return SourceReply(QueryOutcome.UNAVAILABLE, reason=reason)
