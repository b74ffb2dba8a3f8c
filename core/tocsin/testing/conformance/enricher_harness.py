"""Test harness for enrichers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, Self

import orjson
from aiohttp import web

from tocsin.enrichment.sanitizer import sanitize_enrichments
from tocsin.hookspecs import Enricher, Knowledge, NoKnowledge, Tools
from tocsin.model import Enrichment, Entity, Json
from tocsin.observables import Environment
from tocsin.testing.clock import ManualClock
from tocsin.testing.conformance.client import RecordingClient
from tocsin.testing.conformance.rules import (
    RuleViolation,
    catch_failure,
    describe_error,
    does_not_apply,
)
from tocsin.testing.faults import Fault, spoil
from tocsin.testing.server import LoopbackServer
from tocsin.testing.tools import make_settings, make_tools

NAME = "conformance"
DELAY = timedelta(seconds=90)
"""What the server asks for that names a delay."""

Handler = Callable[[web.Request], Awaitable[Any]]


class EnricherSuite(ABC):
    """What the rules of enrichers stand on."""

    enricher: ClassVar[type[Enricher]]
    known: ClassVar[Sequence[Entity]]
    """What something is known of: two entities or more, of as many kinds as there are."""
    unknown: ClassVar[Sequence[Entity]] = ()
    """What nothing is known of; empty where something is known of everything."""
    environment: ClassVar[Environment] = Environment()
    knowledge: ClassVar[Knowledge] = NoKnowledge()

    @abstractmethod
    def settings(self, url: str) -> Mapping[str, Any]:
        """Return the settings with which the enricher asks the server at `url`.

        Secrets are given as text. Leave out what has a default.
        """

    def routes(self) -> Sequence[web.RouteDef]:
        """Return what the source's server answers; nothing where the enricher asks nobody."""
        return ()

    def harness(self) -> EnricherHarness:
        """Return where the enricher is tried out."""
        return EnricherHarness(self)

    def served_harness(self) -> EnricherHarness:
        """Return where the enricher is tried out; skip the rule where it asks nobody."""
        return self.harness() if self.routes() else does_not_apply("it asks nobody")


class EnricherHarness:
    """One try; `async with` makes ready and clears away."""

    def __init__(self, suite: EnricherSuite) -> None:
        self.suite = suite
        self.clock = ManualClock()
        self.fault: Fault | HTTPStatus | None = None
        """What goes wrong with every request, or the status that each is answered."""
        self.alter: Callable[[Json], Json] = lambda content: content
        """What is done to what the server answers."""
        self.requests: list[web.Request] = []
        self.answers: list[Json] = []
        """What the server has answered, before it was altered."""
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
                words = f"a handler of the server raised {describe_error(mistake)}"
                raise RuleViolation(f"{seen}; {words}") from mistake

    @property
    def tools(self) -> Tools:
        """What the enricher is handed."""
        environment, knowledge = self.suite.environment, self.suite.knowledge
        return make_tools(self.http, NAME, self.clock, environment=environment, knowledge=knowledge)

    def checked_settings(self) -> Any:
        """Return the enricher's settings."""
        return make_settings(self.suite.enricher, NAME, **self.suite.settings(self._server.url))

    async def open(self) -> Enricher:
        """Return another enricher, which remembers nothing."""
        kind = self.suite.enricher
        if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
            raise RuleViolation(f"{kind.__name__} cannot be made: it lacks {', '.join(lacking)}")
        enricher = kind(self.checked_settings(), self.tools)
        await enricher.start()
        return enricher

    async def ask(self, entities: Sequence[Entity]) -> list[Enrichment]:
        """Return what is said of these, asked for a batch at a time; it is sound."""
        size, said = max(self.enricher.batch, 1), list[Enrichment]()
        for at in range(0, len(entities), size):
            batch = entities[at : at + size]
            came = await self.enricher.enrich(batch)
            try:
                sanitize_enrichments(came, batch)
            except (TypeError, ValueError, AttributeError) as error:
                raise RuleViolation(f"{describe_error(error)} in {came!r:.300}") from error
            said += came
        return said

    async def failure(self, asking: Awaitable[object]) -> Exception | None:
        """Return what is raised, None if it goes well."""
        return await catch_failure(asking)

    async def hang_up(self) -> None:
        """Have the server be away."""
        await self.http.close()  # a server that ends waits for idle connections
        await self._server.hang_up()

    @web.middleware
    async def _serve(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.requests.append(request)
        answer = partial(self._answer, request, handler)
        match self.fault:
            case None:
                return await answer()
            case Fault():
                return await spoil(self.fault, request, answer, self.clock.now(), DELAY)
        return web.json_response({"error": self.fault.phrase}, status=self.fault)

    async def _answer(self, request: web.Request, handler: Handler) -> web.Response:
        try:
            response: web.Response = await handler(request)
        except web.HTTPException as error:
            return web.json_response({"error": error.reason}, status=error.status)
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
