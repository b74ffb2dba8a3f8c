"""Test harness for channels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self

from aiohttp import web

from tocsin.delivery import Renderer
from tocsin.hookspecs import Channel
from tocsin.model import Contract, Delivery, Event, Idempotency, Receipt
from tocsin.testing.clock import ManualClock
from tocsin.testing.conformance.channel_events import ChannelEvents
from tocsin.testing.conformance.client import RecordingClient
from tocsin.testing.conformance.event_loop import EventLoopRules
from tocsin.testing.conformance.rules import RuleViolation, catch_failure, describe_error
from tocsin.testing.faults import Fault
from tocsin.testing.tools import make_settings, make_tools, shipped_templates
from tocsin.testing.vendor_api import ErrorResponse, VendorApi

NAME = "conformance"
_TIMEOUT = "5s"  # shorter than the search delays of receivers


class ChannelSuite(EventLoopRules):
    """Base of the channel rules."""

    channel: ClassVar[type[Channel]]
    idempotency: ClassVar[Idempotency] = Idempotency.NATIVE
    """How the receiver recognizes a repeated event."""

    @abstractmethod
    def settings(self, url: str) -> Mapping[str, Any]:
        """Return the settings with which the channel reaches the server at `url`.

        Return secrets as plain text and leave out settings that have a default.
        """

    def template_paths(self) -> Sequence[Path]:
        """Return the template directories; by default, those that ship with Tocsin."""
        return _load_shipped_templates()

    @abstractmethod
    def harness(self, **settings: Any) -> ChannelHarness:
        """Return a harness for the channel, with these settings in addition to `settings`."""


class ChannelHarness(ChannelEvents, ABC):
    """One test run of a channel; `async with` sets it up and cleans up."""

    server: VendorApi
    """The server that receives the channel's requests."""

    def __init__(self, suite: ChannelSuite, settings: Mapping[str, Any]) -> None:
        super().__init__(ManualClock())
        self.suite = suite
        self.rendered: dict[str, bytes] = {}
        """Rendered parts that replace the templates, as an operator's own templates would."""
        self._settings = settings
        self._renderer = _make_renderer(tuple(suite.template_paths()))

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        self.http = RecordingClient()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.http.close()
        await self.server.__aexit__()
        match raised, self.server.mistakes:
            case [_, Exception() as error, _], [mistake, *_]:
                seen = str(error) if isinstance(error, RuleViolation) else describe_error(error)
                raise RuleViolation(
                    f"{seen}; a handler raised {describe_error(mistake)}"
                ) from mistake

    def use(self, **settings: Any) -> None:
        """Continue with other settings."""
        self._settings = {**self._settings, **settings}
        self.restart()

    def restart(self) -> None:
        """Continue with a new channel object, without any state."""
        self.__dict__.pop("channel", None)

    @cached_property
    def channel(self) -> Channel:
        """The channel under test."""
        kind = self.suite.channel
        if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
            raise RuleViolation(f"{kind.__name__} is abstract: it lacks {', '.join(lacking)}")
        return kind(self.checked_settings(), make_tools(self.http, NAME, self.clock))

    def checked_settings(self, **settings: Any) -> Any:
        """Return the channel's validated settings: the suite's settings, with these changes."""
        usual = {"timeout": _TIMEOUT, **self.suite.settings(self.server.url)}
        given = {**usual, **self._settings, **settings}
        return make_settings(self.suite.channel, NAME, **given)

    def render(self, event: Event, part: str) -> bytes:
        """Return a part of an event, rendered with the destination's template."""
        if part in self.rendered:
            return self.rendered[part]
        return self._renderer.render(self.channel.settings.template, event, part)

    @property
    def contract(self) -> Contract | None:
        """The contract of the receiver whose templates are used."""
        return self._renderer.contract(self.channel.settings.template)

    async def failure(self, doing: Awaitable[object]) -> Exception | None:
        """Return the exception that an awaitable raises, or None if it succeeds."""
        return await catch_failure(doing)


class EventChannelSuite(ChannelSuite):
    """Base of the rules for channels that send each event in a request."""

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the receiver's routes; by default, every request gets the response `{}`."""
        return [web.route("*", "/{path:.*}", _accept)]

    def refuse(self, refusal: ErrorResponse) -> web.Response | None:  # noqa: ARG002 - for overrides
        """Return the error response that the receiver sends when it refuses a request.

        Override this method if the receiver reports errors with status 200. By default, the
        response contains the status and, as JSON, the reason.
        """
        return None

    def harness(self, **settings: Any) -> EventChannelHarness:
        """Return a harness for the channel, with these settings in addition to `settings`."""
        return EventChannelHarness(self, settings)

    async def exercise(self) -> None:
        """Deliver an event and check the receiver."""
        async with self.harness() as harness:
            await harness.deliver(harness.alert())
            await harness.channel.check()


class EventChannelHarness(ChannelHarness):
    """One test run of a channel that sends each event in a request."""

    def __init__(self, suite: EventChannelSuite, settings: Mapping[str, Any]) -> None:
        super().__init__(suite, settings)
        self.receiver = self.server = _Receiver(suite, self.clock)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.channel.start()
        return self

    async def deliver(self, event: Event, attempt: int = 1) -> Receipt:
        """Make one attempt and return its receipt. Raises the channel's errors."""
        delivery = Delivery(
            id="dlv_1",
            event=event,
            attempt=attempt,
            remote_id=None,
            render=partial(self.render, event),
            contract=self.contract,
        )
        return await self.channel.deliver(delivery)

    async def hang_up(self) -> None:
        """Make the receiver unreachable."""
        await self.http.close()  # server shutdown waits for idle connections
        await self.receiver.hang_up()


class _Receiver(VendorApi):
    """The server of a suite, whose every request fails with `fault`."""

    def __init__(self, suite: EventChannelSuite, clock: ManualClock) -> None:
        self._suite = suite
        self.fault: Fault | None = None
        self.refusal: ErrorResponse | None = None
        super().__init__(clock)

    def routes(self) -> Sequence[web.RouteDef]:
        return self._suite.routes()

    def is_signed(self, request: web.Request) -> bool:  # noqa: ARG002 - the suite's handlers check
        return True

    def refuse(self, refusal: ErrorResponse) -> web.Response:
        return self._suite.refuse(refusal) or super().refuse(refusal)

    async def hang_up(self) -> None:
        await self._server.hang_up()

    async def _admit(self, request: web.Request) -> None:
        if self.refusal is not None:
            raise self.refusal
        await super()._admit(request)

    def _select_fault(self, _: web.Request) -> Fault | None:
        return self.fault


async def _accept(_: web.Request) -> web.Response:
    return web.json_response({})


@lru_cache(4)
def _make_renderer(paths: tuple[Path, ...]) -> Renderer:
    return Renderer(paths)


@cache
def _load_shipped_templates() -> Sequence[Path]:
    return shipped_templates()
