"""Test harness for channels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self

from tocsin.channels import TicketSettings
from tocsin.delivery import HEARTBEAT, Renderer
from tocsin.errors import Broken, PluginFailure, TryLater
from tocsin.hookspecs import Channel
from tocsin.model import Delivery, Event, Idempotency, Receipt
from tocsin.testing.clock import ManualClock
from tocsin.testing.conformance.channel_events import ADDRESSES, ChannelEvents
from tocsin.testing.conformance.client import RecordingClient
from tocsin.testing.conformance.rules import RuleViolation, catch_failure, describe_error
from tocsin.testing.receiver import ReceiverSimulator, RemoteObject
from tocsin.testing.tools import make_settings, make_tools, shipped_templates

__all__ = ["ADDRESSES", "ChannelHarness", "ChannelSuite"]

NAME = "conformance"
_TRIES = 12
_TIMEOUT = "5s"  # shorter than the receiver's search lag
_PAUSE = timedelta(seconds=5)


class ChannelSuite(ABC):
    """Base of the channel rules."""

    channel: ClassVar[type[Channel]]
    simulator: ClassVar[type[ReceiverSimulator]]
    idempotency: ClassVar[Idempotency] = Idempotency.NATIVE
    """How the receiver recognizes a repeated event."""
    permissions: ClassVar[Sequence[str]] = ()
    """The permissions that the channel needs in the receiver; `simulator.lacks` revokes them."""

    @abstractmethod
    def settings(self, url: str) -> Mapping[str, Any]:
        """Return the settings with which the channel reaches the simulator at `url`.

        Give secrets as plain text. Omit settings that have a default.
        """

    def template_paths(self) -> Sequence[Path]:
        """Return the directories of the channel's templates. Default: the shipped ones."""
        return _load_shipped_templates()

    @property
    def keeps_observables(self) -> bool:
        """Whether the receiver stores observables; otherwise, texts mention them."""
        return not issubclass(self.channel.Settings, TicketSettings)

    def harness(self, **settings: Any) -> ChannelHarness:
        """Return a harness for the channel, with these settings in addition to its usual ones."""
        return ChannelHarness(self, settings)


class ChannelHarness(ChannelEvents):
    """One test run of a channel; `async with` sets it up and cleans up.

    `bring` delivers an event as the core does: it repeats attempts until one succeeds, and
    remembers the receiver's ID for the object of each subject.
    """

    def __init__(self, suite: ChannelSuite, settings: Mapping[str, Any]) -> None:
        super().__init__(ManualClock())
        self.suite = suite
        self.simulator = suite.simulator(self.clock)
        self.known: dict[str, str] = {}
        """The receiver's IDs of objects, by subject."""
        self.rendered: dict[str, bytes] = {}
        """Rendered parts that replace the templates, as an operator's own templates would."""
        self._settings = settings
        self._begun: dict[str, datetime | None] = {}
        self._left: dict[str, str] = {}
        self._renderer = _make_renderer(tuple(suite.template_paths()))

    async def __aenter__(self) -> Self:
        await self.simulator.__aenter__()
        self.http = RecordingClient()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.http.close()
        await self.simulator.__aexit__()
        match raised, self.simulator.mistakes:
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
        """Continue with a new channel object, which remembers nothing."""
        self.__dict__.pop("channel", None)

    @cached_property
    def channel(self) -> Channel:
        """The channel under test."""
        tools = make_tools(self.http, NAME, self.clock)
        return self.suite.channel(self.checked_settings(), tools)

    def checked_settings(self, **settings: Any) -> Any:
        """Return the channel's validated settings, with these in addition to its usual ones."""
        usual = {"timeout": _TIMEOUT, **self.suite.settings(self.simulator.url)}
        given = {**usual, **self._settings, **settings}
        return make_settings(self.suite.channel, NAME, **given)

    @property
    def objects(self) -> Sequence[RemoteObject]:
        """The objects in the receiver."""
        return self.simulator.objects()

    async def attempt(self, event: Event, *, waited: timedelta = timedelta(0)) -> Receipt:
        """Return the receipt of one attempt; raises what the channel raises.

        The attempt starts `waited` after its claim. As in the core, the recorded start is the
        latest possible moment while the attempt has not ended.
        """
        delivery = self._delivery(event)
        self._begun[event.id] = self.clock.now() + HEARTBEAT
        self.clock.advance(seconds=waited.total_seconds())
        started = self.clock.now()
        try:
            receipt = await self.channel.deliver(delivery)
        except Exception as error:
            is_unsent = isinstance(error, TryLater) and error.unsent
            self._begun[event.id] = delivery.tried_at if is_unsent else started
            raise
        self._begun[event.id] = started
        return receipt

    def _delivery(self, event: Event) -> Delivery:
        return Delivery(
            id="dlv_1",
            event=event,
            attempt=1,
            remote_id=self.known.get(event.subject),
            related={
                subject: self.known[subject] for subject in event.related if subject in self.known
            },
            tried_at=self._begun.get(event.id),
            previous_remote_id=self._left.get(event.id),
            render=partial(self._render, event),
            contract=self._renderer.contract(self.channel.settings.template),
        )

    def _render(self, event: Event, part: str) -> bytes:
        if part in self.rendered:
            return self.rendered[part]
        return self._renderer.render(self.channel.settings.template, event, part)

    async def bring(
        self, event: Event, *, remember: bool = True, waited: timedelta = timedelta(0)
    ) -> Receipt:
        """Return the receipt of an event after as many attempts as it takes.

        With `remember=False`, the node dies before it records the result.
        """
        for _ in range(_TRIES):
            claimed_at = self.clock.now()
            try:
                receipt = await self.attempt(event, waited=waited)
            except (TryLater, Broken) as error:
                self.wait_out(error)
                continue
            if not remember:
                self._begun[event.id] = claimed_at + HEARTBEAT
            elif receipt.remote_id is not None:
                self.known[event.subject] = self._left[event.id] = receipt.remote_id
            return receipt
        raise RuleViolation(f"the event was not delivered in {_TRIES} attempts")

    def wait_out(self, error: PluginFailure) -> None:
        """Advance the clock by as much as the core waits after this failure."""
        after = error.after if isinstance(error, TryLater) else None
        self.clock.advance(seconds=(after or _PAUSE).total_seconds())

    async def failure(self, doing: Awaitable[object]) -> Exception | None:
        """Return the exception that an awaitable raises, None if it succeeds."""
        return await catch_failure(doing)


@lru_cache(4)
def _make_renderer(paths: tuple[Path, ...]) -> Renderer:
    return Renderer(paths)


@cache
def _load_shipped_templates() -> Sequence[Path]:
    return shipped_templates()
