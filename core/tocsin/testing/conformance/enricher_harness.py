"""Test harness for enrichers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, Self

import orjson
from aiohttp import web

from tocsin.enrichment import sanitize_enrichments
from tocsin.hookspecs import Enricher, Knowledge, NoKnowledge, Tools
from tocsin.model import Enrichment, Entity, Json
from tocsin.observables import Environment
from tocsin.testing.clock import ManualClock
from tocsin.testing.conformance.client import RecordingClient
from tocsin.testing.conformance.event_loop import EventLoopRules
from tocsin.testing.conformance.rules import (
    RuleViolation,
    catch_failure,
    describe_error,
    does_not_apply,
)
from tocsin.testing.faults import REFUSALS, Fault, retry_after_header, spoil
from tocsin.testing.server import LoopbackServer
from tocsin.testing.tools import make_settings, make_tools
from tocsin.testing.vendor_api import ErrorResponse

NAME = "conformance"
DELAY = timedelta(seconds=90)
"""The Retry-After delay that the server sends."""

Handler = Callable[[web.Request], Awaitable[Any]]


class EnricherSuite(EventLoopRules):
    """Base of the enricher rules."""

    enricher: ClassVar[type[Enricher]]
    known: ClassVar[Sequence[Entity]]
    """Two or more entities that the source knows, of as many kinds as possible."""
    unknown: ClassVar[Sequence[Entity]] = ()
    """Entities that the source does not know, if there are any."""
    environment: ClassVar[Environment] = Environment()
    knowledge: ClassVar[Knowledge] = NoKnowledge()

    @abstractmethod
    def settings(self, url: str) -> Mapping[str, Any]:
        """Return the settings with which the enricher queries the server at `url`.

        Return secrets as plain text and leave out settings that have a default.
        """

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes of the source's server; none if the enricher does not send requests."""
        return ()

    def refuse(self, refusal: ErrorResponse) -> web.Response | None:  # noqa: ARG002 - for overrides
        """Return the error response that the server sends when it refuses a request.

        Override this method if the source reports errors with status 200. By default, the response
        contains the status and, as JSON, the reason.
        """
        return None

    def harness(self) -> EnricherHarness:
        """Return a harness for the enricher."""
        return EnricherHarness(self)

    async def exercise(self) -> None:
        """Query the known entities and check the source."""
        async with self.harness() as harness:
            await harness.ask(self.known)
            await harness.enricher.check()

    def served_harness(self) -> EnricherHarness:
        """Return a harness for the enricher; skip the rule if the enricher sends no requests."""
        return self.harness() if self.routes() else does_not_apply("the enricher sends no requests")


class EnricherHarness:
    """One test run of an enricher; `async with` sets it up and cleans up."""

    def __init__(self, suite: EnricherSuite) -> None:
        self.suite = suite
        self.clock = ManualClock()
        self.fault: Fault | HTTPStatus | None = None
        """The fault of every request, or the status that each receives."""
        self.refuses_faults = False
        """Whether faults with an HTTP status are sent by `refuse`; by default, as a proxy would."""
        self.alter: Callable[[Json], Json] = lambda content: content
        """A change that is applied to every response."""
        self.requests: list[web.Request] = []
        self.answers: list[Json] = []
        """The responses of the server, before any change."""
        self._mistakes: list[Exception] = []
        app = web.Application(middlewares=[self._serve])
        app.add_routes(suite.routes())
        self._server = LoopbackServer(app)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        self.http = RecordingClient()
        self.enricher = await self.open()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.http.close()
        await self._server.__aexit__()
        match raised, self._mistakes:
            case [_, Exception() as error, _], [mistake, *_]:
                seen = str(error) if isinstance(error, RuleViolation) else describe_error(error)
                detail = f"a handler of the server raised {describe_error(mistake)}"
                raise RuleViolation(f"{seen}; {detail}") from mistake

    @property
    def tools(self) -> Tools:
        """The tools that the enricher receives."""
        environment, knowledge = self.suite.environment, self.suite.knowledge
        return make_tools(self.http, NAME, self.clock, environment=environment, knowledge=knowledge)

    def checked_settings(self) -> Any:
        """Return the enricher's validated settings."""
        return make_settings(self.suite.enricher, NAME, **self.suite.settings(self._server.url))

    async def open(self) -> Enricher:
        """Return a new enricher, which remembers nothing."""
        kind = self.suite.enricher
        if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
            raise RuleViolation(f"{kind.__name__} is abstract: it lacks {', '.join(lacking)}")
        enricher = kind(self.checked_settings(), self.tools)
        await enricher.start()
        return enricher

    async def ask(self, entities: Sequence[Entity]) -> list[Enrichment]:
        """Return the validated enrichments of these entities, requested in batches."""
        size, results = max(self.enricher.batch, 1), list[Enrichment]()
        for at in range(0, len(entities), size):
            batch = entities[at : at + size]
            received = await self.enricher.enrich(batch)
            try:
                sanitize_enrichments(received, batch, self.enricher.enrich)
            except (TypeError, ValueError, AttributeError) as error:
                raise RuleViolation(f"{describe_error(error)} in {received!r:.300}") from error
            results += received
        return results

    async def failure(self, asking: Awaitable[object]) -> Exception | None:
        """Return the exception that an awaitable raises, or None if it succeeds."""
        return await catch_failure(asking)

    @property
    def sends_delays(self) -> bool:
        """Whether the server's own responses to throttled requests have Retry-After."""
        return "Retry-After" in self._refuse(Fault.THROTTLED).headers

    async def hang_up(self) -> None:
        """Make the server unreachable."""
        await self.http.close()  # server shutdown waits for idle connections
        await self._server.hang_up()

    @web.middleware
    async def _serve(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.requests.append(request)
        answer = partial(self._answer, request, handler)
        match self.fault:
            case None:
                return await answer()
            case Fault() if self.refuses_faults and self.fault in REFUSALS:
                return self._refuse(self.fault)
            case Fault():
                return await spoil(self.fault, request, answer, self.clock.now(), DELAY)
        return web.json_response({"error": self.fault.phrase}, status=self.fault)

    def _refuse(self, fault: Fault) -> web.Response:
        headers = retry_after_header(fault, self.clock.now(), DELAY)
        refusal = ErrorResponse(*REFUSALS[fault], headers)
        return self.suite.refuse(refusal) or web.json_response(
            {"error": refusal.reason}, status=refusal.status, headers=headers
        )

    async def _answer(self, request: web.Request, handler: Handler) -> web.Response:
        try:
            response: web.Response = await handler(request)
        except (web.HTTPException, ErrorResponse) as error:
            refused = self.suite.refuse(ErrorResponse(error.status, error.reason))
            return refused or web.json_response({"error": error.reason}, status=error.status)
        except Exception as mistake:
            self._mistakes.append(mistake)
            raise
        try:
            content = orjson.loads(response.body if isinstance(response.body, bytes) else b"")
        except ValueError:
            return response
        self.answers.append(content)
        return web.Response(
            body=orjson.dumps(self.alter(content)),
            status=response.status,
            content_type=response.content_type,
        )
