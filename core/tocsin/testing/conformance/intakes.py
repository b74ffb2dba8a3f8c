"""Accepted pushes of an intake: their order, their repetition, their loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, ClassVar

from tocsin.errors import ConflictError, TryLater
from tocsin.hookspecs import Intake, IntakePosition, IntakePush
from tocsin.testing.clock import ManualClock
from tocsin.testing.conformance.client import RecordingClient
from tocsin.testing.conformance.rules import (
    catch_failure,
    describe_error,
    does_not_apply,
    expect,
    rule,
)
from tocsin.testing.tools import make_settings, make_tools

NAME = "intake"
PROVIDER = "our-scripts"
_TRIES = 5
"""How often a fetch may fail after a disconnect before the rule counts as broken."""


class IntakeRules:
    """Rules of every intake."""

    intake: ClassVar[type[Intake]]

    @abstractmethod
    def serve(self) -> AbstractAsyncContextManager[Mapping[str, Any]]:
        """Start empty servers, yield the intake's settings for them, and stop them."""

    async def lose_stream(self) -> None:
        """Delete all data on the servers, to simulate a lost disk."""
        does_not_apply("the servers cannot lose their data")

    async def stop_servers(self) -> None:
        """Stop the servers."""
        does_not_apply("there are no servers")

    async def lose_on_the_way(self, body: bytes) -> None:  # noqa: ARG002 - for harnesses
        """Disconnect the intake once, as soon as the servers send it a push with this body."""
        does_not_apply("no network between the intake and the servers can lose a push")

    @asynccontextmanager
    async def open(self, settings: Mapping[str, Any]) -> AsyncIterator[Intake]:
        """Yield a started intake."""
        clock, client = ManualClock(), RecordingClient()
        made = self.intake(
            make_settings(self.intake, NAME, **settings), make_tools(client, NAME, clock)
        )
        await made.start()
        try:
            await self.wait_until_available(made)
            yield made
        finally:
            await made.close()
            await client.close()

    async def wait_until_available(self, intake: Intake) -> None:
        """Wait until the intake accepts pushes."""

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[Intake]:
        """Yield a started intake with its own servers."""
        async with self.serve() as settings, self.open(settings) as intake:
            yield intake

    @rule
    async def test_pushes_are_returned_in_their_order(self) -> None:
        """Pushes are returned with their bodies untouched, in the order of their acceptance.

        The incidents of a later push replace those of an earlier one.
        """
        async with self.ready() as intake:
            sent = [make_push(str(number), body=b"%d \x00\xff" % number) for number in range(3)]
            places = [await intake.publish(push) for push in sent]
            page = await intake.fetch(PROVIDER, None, 10)
            expect([each.body for each in page.pushes] == [push.body for push in sent], repr(page))
            expect(
                [each.sequence for each in page.pushes] == [place.sequence for place in places],
                f"published at {places}, fetched {page}",
            )
            times = {each.received_at for each in page.pushes}
            expect(times == {sent[0].received_at}, f"received at {times}")
            expect(page.end.stream == places[-1].stream, repr(page.end))

    @rule
    async def test_a_position_returns_what_follows_it(self) -> None:
        """A position returns what follows it, and the same again if it is used again.

        A node that stops before it has stored the pushes fetches them again, and a restored backup
        continues from its own position.
        """
        async with self.ready() as intake:
            first, second, _ = [await intake.publish(make_push(str(n))) for n in range(3)]
            for _ in range(2):
                page = await intake.fetch(PROVIDER, first, 1)
                expect([each.body for each in page.pushes] == [b"1"], repr(page))
                expect(page.start == first, f"asked for {first}, got {page.start}")
                expect(page.end == second, f"expected the end {second}, got {page.end}")
                await intake.acknowledge(PROVIDER, second)
            rest = await intake.fetch(PROVIDER, second, 10)
            expect([each.body for each in rest.pushes] == [b"2"], repr(rest))
            again = await intake.fetch(PROVIDER, None, 10)
            expect(
                [each.body for each in again.pushes] == [b"0", b"1", b"2"],
                f"after the acknowledgement: {again}",
            )

    @rule
    async def test_each_provider_has_its_own_pushes(self) -> None:
        """A provider gets its own pushes alone, and a key belongs to its provider.

        Senders of different providers know nothing of each other, and use the same keys.
        """
        async with self.ready() as intake:
            await intake.publish(make_push("1", body=b"ours"))
            await intake.publish(make_push("1", provider="theirs", body=b"theirs"))
            for provider, body in ((PROVIDER, b"ours"), ("theirs", b"theirs")):
                page = await intake.fetch(provider, None, 10)
                expect([each.body for each in page.pushes] == [body], repr(page))

    @rule
    async def test_a_key_names_one_push(self) -> None:
        """A push that is repeated with its key is accepted once; another body is refused.

        The sender repeats a push whose response was lost. A key that is used for something else is
        a mistake of the sender, whose push would be lost silently.
        """
        async with self.ready() as intake:
            first, second = [await intake.publish(make_push("1")) for _ in range(2)]
            expect(first == second, f"accepted at {first}, repeated at {second}")
            error = await catch_failure(intake.publish(make_push("1", body=b"another")))
            expect(isinstance(error, ConflictError), f"another body: {describe_error(error)}")
            page = await intake.fetch(PROVIDER, None, 10)
            expect(len(page.pushes) == 1, repr(page))

    @rule
    async def test_no_reader_loses_pushes_to_another(self) -> None:
        """Each of two readers gets all pushes after its position, whatever the other one fetched.

        A node that loses its lease may fetch once more while the next one reads, and may read again
        after that one has crashed with pushes that it did not store.
        """
        async with self.serve() as settings, self.open(settings) as one, self.open(settings) as two:
            await one.publish(make_push("1"))
            start = (await one.fetch(PROVIDER, None, 10)).end
            await one.acknowledge(PROVIDER, start)
            await one.publish(make_push("2"))
            await two.fetch(PROVIDER, start, 10)
            await one.publish(make_push("3"))
            for name, reader in (("first", one), ("second", two)):
                page = await reader.fetch(PROVIDER, start, 10)
                expect([each.body for each in page.pushes] == [b"2", b"3"], f"{name}: {page}")

    @rule
    async def test_a_push_that_is_lost_on_the_way_is_fetched_again(self) -> None:
        """A push that the servers sent and the intake did not receive is fetched again, in order.

        A connection can break at any byte. If a later push were returned instead, the position
        would pass the lost one, and nobody would store it.
        """
        async with self.serve() as settings, self.open(settings) as intake:
            await intake.publish(make_push("1"))
            end = (await intake.fetch(PROVIDER, None, 10)).end
            await intake.acknowledge(PROVIDER, end)
            await intake.publish(make_push("2", body=b"lost on the way"))
            await self.lose_on_the_way(b"lost on the way")
            bodies: list[bytes] = []
            for attempt in range(_TRIES):
                await self.wait_until_available(intake)
                if attempt == 1:
                    await intake.publish(make_push("3"))
                with suppress(TryLater):
                    page = await intake.fetch(PROVIDER, end, 10)
                    bodies += [each.body for each in page.pushes]
                    end = page.end
                    await intake.acknowledge(PROVIDER, end)
                if bodies[-1:] == [b"3"]:
                    break
            expect(bodies == [b"lost on the way", b"3"], repr(bodies))

    @rule
    async def test_a_lost_stream_is_noticed(self) -> None:
        """A stream that was lost and created again has a later name, and is read from its start.

        Numbers begin again in it, and would otherwise be taken for those that are stored already.
        """
        async with self.serve() as settings, self.open(settings) as intake:
            for number in range(3):
                last = await intake.publish(make_push(str(number)))
            await self.lose_stream()
            await self.wait_until_available(intake)
            page = await intake.fetch(PROVIDER, last, 10)
            expect(page.start.stream > last.stream, f"{last}, then {page.start}")
            place = await intake.publish(make_push("new"))
            expect(place.stream == page.start.stream, f"{page.start}, then {place}")
            page = await intake.fetch(PROVIDER, page.end, 10)
            expect([each.body for each in page.pushes] == [b"new"], repr(page))

    @rule
    async def test_servers_that_are_away_refuse_pushes(self) -> None:
        """While the servers are away, a push is refused with TryLater within two seconds.

        It is then stored in the database, before the sender gives up.
        """
        async with self.serve() as settings, self.open(settings) as intake:
            await intake.publish(make_push("1"))
            await self.stop_servers()
            error = await catch_failure(intake.publish(make_push("2")))
            expect(isinstance(error, TryLater), describe_error(error))
            error = await catch_failure(intake.fetch(PROVIDER, IntakePosition("", 0), 10))
            expect(isinstance(error, TryLater), f"fetch: {describe_error(error)}")


def make_push(key: str, *, provider: str = PROVIDER, body: bytes | None = None) -> IntakePush:
    """Return a push with a key, which is its body unless there is another one."""
    return IntakePush(
        provider=provider,
        key=key,
        received_at=ManualClock().now(),
        body=key.encode() if body is None else body,
    )
