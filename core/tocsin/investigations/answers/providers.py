"""Event search at providers; a slow or broken provider does not affect other answers."""

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
from tocsin.plugin_results import describe_method

PROVIDER_TIMEOUT = timedelta(seconds=120)
_log = structlog.get_logger()


class ProviderEventSearch:
    """Event search at all configured providers, including those that are not running."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        absent: Mapping[str, str],
        timeout: timedelta = PROVIDER_TIMEOUT,
    ) -> None:
        """Take the running providers, and the reason why each other one is not running."""
        self._providers = providers
        self._absent = absent
        self._timeout = timeout.total_seconds()

    def sources(self) -> tuple[ProviderSource, ...]:
        """Return all providers, sorted by name."""
        available = [
            ProviderSource(
                name=name,
                answers_events=Capability.EVENTS in provider.capabilities(),
                event_kinds=tuple(sorted(provider.event_kinds)),
                marking=provider.settings.marking,
            )
            for name, provider in self._providers.items()
        ]
        away = [
            ProviderSource(name=name, answers_events=False, reason=reason)
            for name, reason in self._absent.items()
            if name not in self._providers
        ]
        return tuple(sorted(available + away, key=lambda source: source.name))

    async def ask(self, question: FindEvents) -> SourceReply:
        """Return the events that a provider finds, the earliest first."""
        provider = self._providers.get(question.provider)
        if provider is None:
            return self._nobody(question.provider)
        if Capability.EVENTS not in provider.capabilities():
            return SourceReply(QueryOutcome.REFUSED, reason="its plugin cannot search for events")
        if question.entity.kind not in provider.event_kinds:
            reason = f"it cannot search for events by {question.entity.kind}"
            return SourceReply(QueryOutcome.REFUSED, reason=reason)
        found: list[SiemEvent] = []
        try:
            async with asyncio.timeout(self._timeout) as limit:
                await _find(provider, question, found)
        except PLUGIN_FAILURES as error:
            if was_cancelled():
                raise
            late = f"no response within {self._timeout:g} seconds"
            why = _unavailable(late) if limit.expired() else _failed(question.provider, error)
            return _in_part(found, question, why) if found else why
        return SourceReply(QueryOutcome.ANSWERED, _latest(found, question))

    def _nobody(self, name: str) -> SourceReply:
        if name in self._absent:
            return _unavailable(f"not running: {self._absent[name]}")
        return SourceReply(QueryOutcome.REFUSED, reason="unknown provider")


async def _find(provider: Provider, question: FindEvents, found: list[SiemEvent]) -> None:
    """Add the latest events to `found`, one beyond the limit to detect that there are more."""
    finding = provider.events(question.entity, question.window, question.limit + 1)
    async with aclosing(finding) as events:
        async for event in events:
            _check(event, provider)
            found.append(event)
            if len(found) > question.limit:
                break


def _check(event: object, provider: Provider) -> None:
    """Raise TypeError or ValueError for an event that cannot be sorted."""
    if not isinstance(event, SiemEvent) or not isinstance(event.external_id, str | None):
        wrong = f"{event!r:.200}, not a `SiemEvent` with a string as identifier"
        raise TypeError(f"{describe_method(provider.events)} yielded {wrong}")
    if event.occurred_at.utcoffset() is None:
        raise ValueError(f"the time of an event needs a time zone: {event.occurred_at!r}")


def _latest(found: list[SiemEvent], question: FindEvents) -> FoundEvents:
    found.sort(key=lambda event: (event.occurred_at, event.external_id or ""))
    complete = len(found) <= question.limit
    return FoundEvents(events=tuple(found[-question.limit :]), complete=complete)


def _in_part(found: list[SiemEvent], question: FindEvents, why: SourceReply) -> SourceReply:
    """Return the events found before a failure, as incomplete, with the reason."""
    part = replace(_latest(found, question), complete=False)
    return SourceReply(QueryOutcome.ANSWERED, part, why.reason)


def _failed(name: str, error: BaseException) -> SourceReply:
    if isinstance(error, Misconfigured):  # unavailable until the configuration is fixed
        return _unavailable(str(error))
    if isinstance(error, Refused):
        return SourceReply(QueryOutcome.REFUSED, reason=str(error))
    if isinstance(error, PluginFailure | OSError):
        return _unavailable(str(error))
    _log.error("event search failed", provider=name, exc_info=error)
    return _unavailable(f"internal error in its plugin ({type(error).__name__})")


def _unavailable(reason: str) -> SourceReply:
    return SourceReply(QueryOutcome.UNAVAILABLE, reason=reason)
