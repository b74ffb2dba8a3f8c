"""Answers of providers and enrichers, including broken ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from tocsin import (
    Broken,
    CredentialsRefused,
    Entity,
    EntityKind,
    Health,
    Misconfigured,
    Provider,
    Refused,
    SiemEvent,
    Tools,
    TryLater,
)
from tocsin.enrichment import EnrichmentResult
from tocsin.investigations import ProviderEventSearch, QuestionRouter, SourceReply
from tocsin.model import (
    FindEvents,
    GetEnrichments,
    ListSources,
    Marking,
    QueryOutcome,
    SearchHistory,
    Window,
)
from tocsin.observables import Environment

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = Window(BEGIN, BEGIN + timedelta(days=1))
BAD = Entity(EntityKind.IP, "203.0.113.9")


class Deaf(Provider):
    """Cannot be asked."""

    async def check(self) -> Health:
        return Health(detail="there")

    async def read(self, stream, position, until):
        return
        yield


class Telling(Deaf):
    """Tells `count` events, the latest first, and then does as its error says."""

    count = 3
    error: BaseException | None = None

    async def events(self, entity, window, limit) -> AsyncGenerator[SiemEvent, None]:
        for number in range(min(self.count, limit) - 1, -1, -1):
            at = window.start + timedelta(seconds=number)
            yield SiemEvent(external_id=str(number), occurred_at=at, summary="x")
        if self.error is not None:
            raise self.error


class OfUsers(Telling):
    """Tells of users alone."""

    event_kinds = frozenset({EntityKind.USER})


def event(**members) -> SiemEvent:
    return SiemEvent(**{"external_id": "1", "occurred_at": BEGIN, "summary": "x"} | members)


class Nonsensical(Deaf):
    """Tells what is no event after one that is."""

    nonsense: object = None

    async def events(self, entity, window, limit) -> AsyncGenerator[SiemEvent, None]:
        yield event()
        yield self.nonsense


class Silent(Deaf):
    """Never answers."""

    async def events(self, entity, window, limit) -> AsyncGenerator[SiemEvent, None]:
        await asyncio.Event().wait()
        yield


def make(kind, name="edge") -> Provider:
    tools = Tools(name=name, http=None, clock=None, log=structlog.get_logger())
    return kind(kind.Settings(plugin="telling"), tools)


async def ask(provider, *, limit=10, timeout=timedelta(minutes=2), name="edge") -> SourceReply:
    providers = ProviderEventSearch({"edge": provider}, {"cloud": "no credentials"}, timeout)
    return await providers.ask(FindEvents(provider=name, entity=BAD, window=WINDOW, limit=limit))


async def test_events_come_the_earliest_first():
    reply = await ask(make(Telling))
    assert [event.external_id for event in reply.content.events] == ["0", "1", "2"]
    assert reply.content.complete


@pytest.mark.parametrize(("limit", "complete", "first"), [(3, True, "0"), (2, False, "1")])
async def test_it_is_known_whether_there_are_more_than_the_limit(limit, complete, first):
    reply = await ask(make(Telling), limit=limit)
    assert (reply.content.complete, reply.content.events[0].external_id) == (complete, first)


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (TryLater("busy"), QueryOutcome.UNAVAILABLE, "busy"),
        (Broken("not JSON"), QueryOutcome.UNAVAILABLE, "not JSON"),
        (OSError("no route"), QueryOutcome.UNAVAILABLE, "no route"),
        (Refused("no such index"), QueryOutcome.REFUSED, "no such index"),
        (Misconfigured("not allowed"), QueryOutcome.UNAVAILABLE, "not allowed"),
        (CredentialsRefused("401"), QueryOutcome.UNAVAILABLE, "401"),
        (KeyError("secret"), QueryOutcome.UNAVAILABLE, "internal error in its plugin (KeyError)"),
        (
            asyncio.CancelledError(),
            QueryOutcome.UNAVAILABLE,
            "internal error in its plugin (CancelledError)",
        ),
        (
            SystemExit("enough"),
            QueryOutcome.UNAVAILABLE,
            "internal error in its plugin (SystemExit)",
        ),
    ],
)
async def test_a_provider_that_fails_is_an_answer(error, outcome, reason):
    provider = make(Telling)
    provider.count, provider.error = 0, error
    reply = await ask(provider)
    assert (reply.outcome, reply.content, reply.reason) == (outcome, None, reason)


async def test_what_was_found_before_a_failure_is_an_answer_in_part():
    provider = make(Telling)
    provider.error = TryLater("a file is away")
    reply = await ask(provider)
    assert (reply.outcome, reply.reason) == (QueryOutcome.ANSWERED, "a file is away")
    assert (len(reply.content.events), reply.content.complete) == (3, False)


@pytest.mark.parametrize(
    ("nonsense", "error"),
    [
        (None, "TypeError"),
        (event(external_id=1), "TypeError"),
        (event(occurred_at=BEGIN.replace(tzinfo=None)), "ValueError"),
        (event(occurred_at="yesterday"), "AttributeError"),
    ],
)
async def test_a_provider_that_tells_nonsense_costs_only_its_own_answer(nonsense, error):
    provider = make(Nonsensical)
    provider.nonsense = nonsense
    reply = await ask(provider)
    assert (reply.outcome, reply.reason) == (
        QueryOutcome.ANSWERED,
        f"internal error in its plugin ({error})",
    )
    assert (len(reply.content.events), reply.content.complete) == (1, False)


async def test_a_provider_that_does_not_answer_is_not_waited_for():
    reply = await ask(make(Silent), timeout=timedelta(milliseconds=10))
    assert (reply.outcome, reply.reason) == (
        QueryOutcome.UNAVAILABLE,
        "no response within 0.01 seconds",
    )


@pytest.mark.parametrize(
    ("kind", "name", "outcome"),
    [
        (Deaf, "edge", QueryOutcome.REFUSED),
        (OfUsers, "edge", QueryOutcome.REFUSED),
        (Telling, "other", QueryOutcome.REFUSED),
        (Telling, "cloud", QueryOutcome.UNAVAILABLE),
    ],
)
async def test_who_cannot_be_asked_is_said(kind, name, outcome):
    reply = await ask(make(kind), name=name)
    assert reply.outcome is outcome
    assert reply.reason


class Lists:
    """An enricher that knows nothing, or breaks."""

    error: BaseException | None = None

    def sources(self):
        return ()

    async def ask(self, name, entities, marking) -> EnrichmentResult:
        if self.error is not None:
            raise self.error
        return EnrichmentResult(enrichments=(), outcome=QueryOutcome.ANSWERED)


async def history(question) -> SourceReply:
    return SourceReply(QueryOutcome.ANSWERED, ())


async def read_until() -> dict[str, datetime]:
    return {"edge": BEGIN}


@pytest.fixture
def answers() -> QuestionRouter:
    providers = ProviderEventSearch(
        {"edge": make(Telling), "deaf": make(Deaf)}, {"cloud": "no credentials"}
    )
    return QuestionRouter(history, providers, Lists(), read_until, Environment())


async def test_who_is_there_names_those_that_are_not(answers):
    reply = await answers(ListSources())
    assert [
        (provider.name, provider.answers_events, provider.reason)
        for provider in reply.content.providers
    ] == [
        ("cloud", False, "no credentials"),
        ("deaf", False, None),
        ("edge", True, None),
    ]


async def test_who_is_there_says_up_to_when_each_was_read_and_how_it_is_marked(answers):
    providers = {
        provider.name: provider for provider in (await answers(ListSources())).content.providers
    }
    assert (providers["edge"].read_until, providers["deaf"].read_until) == (BEGIN, None)
    assert providers["edge"].marking == Marking()


async def test_each_question_goes_to_whom_it_is_for(answers):
    asked = FindEvents(provider="edge", entity=BAD, window=WINDOW)
    assert len((await answers(asked)).content.events) == 3
    assert (await answers(SearchHistory(text="x"))).content == ()


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit("enough")])
async def test_an_enricher_that_breaks_is_an_answer(answers, error):
    answers._enrichers.error = error
    reply = await answers(GetEnrichments(enricher="lists", entities=(BAD,), marking=Marking()))
    assert (reply.outcome, reply.reason) == (
        QueryOutcome.UNAVAILABLE,
        f"internal error ({type(error).__name__})",
    )
