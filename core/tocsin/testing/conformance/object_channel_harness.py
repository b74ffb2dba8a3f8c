"""Test harness for channels that keep objects in their receivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar

from tocsin.channels import TicketSettings
from tocsin.delivery import HEARTBEAT
from tocsin.errors import Broken, PluginFailure, TryLater
from tocsin.model import ChangeType, Delivery, Event, Receipt
from tocsin.testing.conformance.channel_events import ADDRESSES
from tocsin.testing.conformance.channel_harness import ChannelHarness, ChannelSuite
from tocsin.testing.conformance.rules import RuleViolation
from tocsin.testing.receiver import ReceiverSimulator, RemoteObject

__all__ = ["ADDRESSES", "ObjectChannelHarness", "ObjectChannelSuite"]

_TRIES = 12
_PAUSE = timedelta(seconds=5)


class ObjectChannelSuite(ChannelSuite):
    """Base of the rules for channels that keep objects."""

    simulator: ClassVar[type[ReceiverSimulator]]
    permissions: ClassVar[Sequence[str]] = ()
    """The permissions that the channel needs in the receiver; `simulator.lacks` revokes them."""

    @property
    def keeps_observables(self) -> bool:
        """Whether the receiver stores observables. Otherwise, its texts name the entities."""
        return not issubclass(self.channel.Settings, TicketSettings)

    def harness(self, **settings: Any) -> ObjectChannelHarness:
        """Return a harness for the channel, with these settings in addition to `settings`."""
        return ObjectChannelHarness(self, settings)

    async def exercise(self) -> None:
        """Deliver an event and check the receiver."""
        async with self.harness() as harness:
            await harness.bring(harness.alert())
            await harness.channel.check()


class ObjectChannelHarness(ChannelHarness):
    """A test run of a channel; `async with` sets up the run and cleans up after it.

    Like the service, `bring` retries a delivery until an attempt succeeds. It also stores the
    receiver's object ID for each subject.
    """

    def __init__(self, suite: ObjectChannelSuite, settings: Mapping[str, Any]) -> None:
        super().__init__(suite, settings)
        self.simulator = self.server = suite.simulator(self.clock)
        self.known: dict[str, str] = {}
        """The receiver's IDs of objects, by subject."""
        self._begun: dict[str, datetime | None] = {}
        self._left: dict[str, str] = {}

    @property
    def objects(self) -> Sequence[RemoteObject]:
        """The objects in the receiver."""
        return self.simulator.objects()

    async def attempt(self, event: Event, *, waited: timedelta = timedelta(0)) -> Receipt:
        """Make one attempt and return its receipt. Raises the channel's errors.

        If the event's type is a `ChangeType`, calls `follow`, otherwise `deliver`. The attempt
        starts when `waited` has passed since a node claimed the delivery. Until the attempt
        finishes, the harness records the latest time at which the attempt can have started, as the
        service does.
        """
        delivery = self._delivery(event)
        self._begun[event.id] = self.clock.now() + HEARTBEAT
        self.clock.advance(seconds=waited.total_seconds())
        started = self.clock.now()
        try:
            is_change = isinstance(event.event_type, ChangeType)
            receipt = await (self.channel.follow if is_change else self.channel.deliver)(delivery)
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
            render=partial(self.render, event),
            contract=self.contract,
        )

    async def bring(
        self, event: Event, *, remember: bool = True, waited: timedelta = timedelta(0)
    ) -> Receipt:
        """Retry the delivery of an event until it succeeds, and return the receipt.

        `remember=False` simulates a node that crashes before it records the result.
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
        """Advance the clock by the time for which the service would wait after this failure."""
        after = error.after if isinstance(error, TryLater) else None
        self.clock.advance(seconds=(after or _PAUSE).total_seconds())
