"""Rules for channels that send each event in a request."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from tocsin.errors import Broken, CredentialsRefused, Refused, TryLater
from tocsin.model import EventType, Health, Idempotency, Receipt
from tocsin.testing.conformance.channel_harness import EventChannelHarness, EventChannelSuite
from tocsin.testing.conformance.rules import (
    OWN_SHAPE,
    describe_error,
    does_not_apply,
    expect,
    expect_failure,
    rule,
)
from tocsin.testing.conformance.settings import expect_no_secret_sent
from tocsin.testing.conformance.texts import HOSTILE
from tocsin.testing.faults import Fault
from tocsin.testing.vendor_api import ErrorResponse

_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class EventDeliveryRules(EventChannelSuite):
    """Rules for the deliveries of a channel that sends each event in a request."""

    @rule
    async def test_every_event_is_sent(self) -> None:
        """`deliver` sends events of all four types and returns a `Receipt`.

        Operators choose which events a destination gets. If a channel drops an event without an
        exception, the event counts as delivered.
        """
        async with self.harness() as harness:
            events = harness.alert(), harness.completed(), harness.failed(1), harness.disabled()
            for event in events:
                before = len(harness.receiver.requests)
                receipt = await harness.deliver(event)
                _expect_receipt(receipt)
                sent = len(harness.receiver.requests) > before
                expect(sent, f"no request for {event.event_type}")
            expect({event.event_type for event in events} == set(EventType), "an event is missing")

    @rule
    async def test_the_event_is_named(self) -> None:
        """Each request contains the event's ID, and a repeated request contains the same ID.

        Tocsin can deliver an event more than once. The receiver recognizes duplicates by the ID.
        """
        if self.idempotency is Idempotency.NONE:
            does_not_apply("the receiver cannot recognize duplicates")
        async with self.harness() as harness:
            event = harness.alert()
            for attempt in (1, 2):
                await harness.deliver(event, attempt)
                sent = harness.receiver.requests[-1]
                texts = (sent.path, *sent.query.values(), *sent.headers.values())
                named = event.id in "\n".join(texts) or event.id.encode() in sent.body
                expect(named, f"no {event.id} in attempt {attempt}")

    @rule
    async def test_hostile_texts_are_data(self) -> None:
        """An event's title does not change the path of the request.

        Attackers can influence the titles of incidents.
        """
        async with self.harness() as harness:
            await harness.deliver(harness.alert())
            usual = {asked.path for asked in harness.receiver.requests}
            for title in HOSTILE:
                await harness.deliver(harness.alert(title=title))
            found = {asked.path for asked in harness.receiver.requests}
            expect(found == usual, f"the paths {sorted(found)}, usually {sorted(usual)}")

    @rule
    async def test_a_busy_receiver_is_retried_after_its_delay(self) -> None:
        """A 429 response raises `TryLater` with `throttled=True` and the delay from Retry-After.

        After such an error, all deliveries to the receiver wait, not just this one.
        """
        async with self.harness() as harness:
            for shape in self._shapes(harness):
                error = await _failure(harness, Fault.THROTTLED)
                is_throttled = isinstance(error, TryLater) and error.throttled
                after = getattr(error, "after", None)
                wanted = harness.receiver.retry_after
                seen = f"{describe_error(error)}, throttled: {is_throttled}, after {after}{shape}"
                is_delayed = after == wanted or (shape and not harness.receiver.sends_delays)
                expect(is_throttled and is_delayed, seen)

    @rule
    async def test_a_failing_receiver_is_retried(self) -> None:
        """A 5xx response or a broken connection raises `TryLater` or `Broken`, never `Refused`.

        The receiver might just be restarting. After `Refused`, Tocsin would never send the event
        again.
        """
        async with self.harness() as harness:
            for shape in self._shapes(harness):
                for fault in (Fault.ERROR, Fault.UNAVAILABLE, Fault.BAD_GATEWAY, Fault.CUT):
                    error = await _failure(harness, fault)
                    seen = f"{describe_error(error)} for the fault {fault}{shape}"
                    expect(isinstance(error, TryLater | Broken), seen)

    @rule
    async def test_a_login_page_is_no_receipt(self) -> None:
        """A 200 response with HTML raises `TryLater` or `Broken`.

        A proxy can send such a response although the event has not arrived.
        """
        async with self.harness() as harness:
            error = await _failure(harness, Fault.LOGIN_PAGE)
            expect(isinstance(error, TryLater | Broken), describe_error(error))

    @rule
    async def test_an_unreachable_receiver_is_temporary(self) -> None:
        """An unreachable receiver raises `TryLater`.

        The delivery waits until the receiver is available again.
        """
        async with self.harness() as harness:
            await harness.hang_up()
            expect_failure(await harness.failure(harness.deliver(harness.alert())), TryLater)

    @rule
    async def test_a_silent_receiver_is_given_up(self) -> None:
        """If the receiver never responds, `deliver` raises `TryLater` after the time in the setting
        `timeout`.

        A delivery that waits forever would occupy one of the destination's few connections.
        """
        async with self.harness(timeout="200ms") as harness:
            expect_failure(await _failure(harness, Fault.SLOW), TryLater)

    @rule
    async def test_refused_credentials_raise(self) -> None:
        """A 401 or 403 response raises `CredentialsRefused`.

        Tocsin puts the delivery on hold until an operator fixes the credentials.
        """
        async with self.harness() as harness:
            if not self.channel.Settings.secret_fields():
                does_not_apply("the channel has no credentials")
            for shape in self._shapes(harness):
                for fault in (Fault.UNAUTHORIZED, Fault.FORBIDDEN):
                    error = await _failure(harness, fault)
                    seen = f"{describe_error(error)} for the fault {fault}{shape}"
                    expect(isinstance(error, CredentialsRefused), seen)

    @rule
    async def test_a_refused_event_is_not_retried(self) -> None:
        """A 422 response raises `Refused`, or `Misconfigured` if an operator can fix the cause.

        Otherwise, Tocsin would retry the delivery, by default for three days, and the receiver
        would reject every retry.
        """
        async with self.harness() as harness:
            harness.receiver.refusal = ErrorResponse(422, "the event is not valid")
            error = await harness.failure(harness.deliver(harness.alert()))
            expect_failure(error, Refused)

    @rule
    async def test_no_secret_is_in_a_url(self) -> None:
        """Secrets are sent in a header or body, never in the URL.

        URLs appear in proxy logs and error messages.
        """
        async with self.harness() as harness:
            await harness.deliver(harness.alert())
            await harness.channel.check()
            asked = harness.receiver.requests
            sent = " ".join(unquote(one.path) + " ".join(one.query.values()) for one in asked)
            expect_no_secret_sent(harness.channel, sent)

    @rule
    async def test_a_check_delivers_nothing(self) -> None:
        """`check` returns a `Health` without problems and sends only GET, HEAD and OPTIONS
        requests.

        `check` runs repeatedly on production systems.
        """
        async with self.harness() as harness:
            health = await harness.channel.check()
            sound = isinstance(health, Health) and health.detail and not health.problems
            expect(sound, f"{health!r:.300}")
            sent = [asked.method for asked in harness.receiver.requests]
            expect(set(sent) <= _READS, f"the requests {', '.join(sent)}")

    def _shapes(self, harness: EventChannelHarness) -> Iterator[str]:
        """Yield the shape in which the receiver then fails, for messages.

        The second shape is the receiver's own, if the suite overrides `refuse`.
        """
        yield ""
        if type(self).refuse is not EventChannelSuite.refuse:
            harness.receiver.refuses_faults = True
            yield OWN_SHAPE


async def _failure(harness: EventChannelHarness, fault: Fault) -> Exception | None:
    harness.receiver.fault = fault
    return await harness.failure(harness.deliver(harness.alert()))


def _expect_receipt(receipt: Receipt) -> None:
    """Check the types of a receipt, which the core stores."""
    expect(isinstance(receipt, Receipt), f"`deliver` returned {receipt!r:.200}, not a `Receipt`")
    kinds = {"status": int, "response": bytes, "remote_id": str, "remote_url": str}
    for name, kind in kinds.items():
        value = getattr(receipt, name)
        expect(value is None or isinstance(value, kind), f"`{name}` of the receipt is {value!r}")
