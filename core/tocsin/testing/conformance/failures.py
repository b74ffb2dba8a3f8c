"""Rules for provider failures and recovery."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from tocsin.errors import PluginFailure, Refused, TryLater
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.pagination import PAGE, SPREAD
from tocsin.testing.conformance.rules import OWN_SHAPE, describe_error, expect, expect_failure, rule
from tocsin.testing.faults import REFUSALS, Fault
from tocsin.testing.vendor_api import VendorApi

_DELAY = timedelta(seconds=90)
_ROUGHLY = timedelta(seconds=2)
_MOST_A_READ = 60


class FailureRules(HttpConformance):
    """Rules for failures of the SIEM."""

    @rule
    async def test_throttling_for_seconds_is_waited_out(self) -> None:
        """A 429 response with Retry-After in seconds raises `TryLater` with that delay.

        If the provider sends a request before the delay ends, the SIEM can extend the delay or lock
        the client out (RFC 9110 section 10.2.3).
        """
        await self._expect_delay(Fault.THROTTLED)

    @rule
    async def test_throttling_until_a_date_is_waited_out(self) -> None:
        """A 429 response with Retry-After as a date raises `TryLater` with the delay until then.

        RFC 9110 section 10.2.3 allows both forms, and proxies send dates.
        """
        await self._expect_delay(Fault.THROTTLED_UNTIL)

    @rule
    async def test_maintenance_is_waited_out(self) -> None:
        """A 503 response with Retry-After raises `TryLater` with that delay.

        SIEMs use Retry-After to announce when maintenance ends.
        """
        await self._expect_delay(Fault.UNAVAILABLE)

    @rule
    async def test_a_bad_gateway_is_temporary(self) -> None:
        """A 502 response raises `TryLater`, and no data is missing after the SIEM recovers.

        If the error counted as an empty list, all changes during the failure would be lost.
        """
        await self._expect_recovery(Fault.BAD_GATEWAY, TryLater)

    @rule
    async def test_reading_recovers_from_server_errors(self) -> None:
        """A 500 response raises `Broken` or `TryLater`, and no data is missing after the SIEM
        recovers.

        If the error counted as an empty list, all changes during the failure would be lost.
        """
        await self._expect_recovery(Fault.ERROR, PluginFailure)

    @rule
    async def test_a_broken_connection_is_temporary(self) -> None:
        """A connection that breaks during a response raises an error, and no data is lost.

        An incomplete response can look complete.
        """
        await self._expect_recovery(Fault.CUT, TryLater)

    @rule
    async def test_an_unreachable_siem_is_temporary(self) -> None:
        """An unreachable SIEM raises `TryLater`, and no data is missing once it is reachable.

        Servers restart at night, when no operator is present, so the provider must recover without
        help.
        """
        async with self.harness() as harness:
            await _begin(harness)
            await harness.hang_up()
            expect_failure(await harness.reader.failure(), TryLater)
            await harness.simulator.listen()
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_a_restart_of_the_siem_loses_nothing(self) -> None:
        """If the SIEM restarts and drops its sessions and page tokens, no data is lost.

        The provider must sign in again and request new tokens.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            await _begin(harness)
            harness.put_many(3 * PAGE, every=SPREAD)
            harness.settle()
            await harness.reader.read(2)
            harness.simulator.fail(Fault.RESTARTED)
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_a_login_page_is_an_error(self) -> None:
        """A 200 response with an HTML login page raises an error, and no data is missing after the
        SIEM recovers.

        Proxies send a login page after a session ends. If the provider treated the page as an empty
        list, incidents would stop arriving without any error.
        """
        await self._expect_recovery(Fault.LOGIN_PAGE, PluginFailure)

    @rule
    async def test_a_partial_response_is_an_error(self) -> None:
        """A 206 response raises an error, and no data is missing once the SIEM returns complete
        responses.

        Status 206 means that some nodes of the SIEM did not respond, so their incidents are
        missing.
        """
        await self._expect_recovery(Fault.PARTIAL, PluginFailure)

    @rule
    async def test_truncated_json_is_an_error(self) -> None:
        """Truncated JSON raises an error, and no data is lost.

        The missing part of the response can contain incidents.
        """
        await self._expect_recovery(Fault.TRUNCATED, PluginFailure)

    @rule
    async def test_an_empty_body_is_an_error(self) -> None:
        """A 200 response without a body raises an error, and no data is lost.

        If there are no incidents, the SIEM sends an empty list. A response without a body is
        therefore a failure.
        """
        await self._expect_recovery(Fault.EMPTY, PluginFailure)

    @rule
    async def test_a_missing_member_is_not_an_empty_list(self) -> None:
        """JSON without the member that contains the list raises an error, and no data is lost.

        Otherwise, if the vendor renamed this member, the provider would read nothing and still look
        healthy.
        """
        await self._expect_recovery(Fault.UNEXPECTED, PluginFailure)

    @rule
    async def test_an_error_with_status_200_is_not_an_empty_list(self) -> None:
        """A 200 response with `{"error": ...}` raises an error, and no data is lost.

        JSON-RPC, GraphQL and many gateways report errors with status 200.
        """
        async with self._begun() as harness:
            as_it_was = harness.alter_answer
            harness.alter_answer = lambda _: {"error": {"code": 500, "message": "internal error"}}
            expect_failure(await harness.reader.failure(), PluginFailure)
            harness.alter_answer = as_it_was
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_a_missing_permission_is_refused(self) -> None:
        """A 403 response raises `CredentialsRefused` or another `Refused`, and reading resumes once
        the cause is fixed.

        Until an operator fixes the cause, the provider must not flood the SIEM with requests.
        """
        await self._expect_recovery(Fault.FORBIDDEN, Refused)

    @rule
    async def test_a_throttled_siem_is_read_to_the_end(self) -> None:
        """If the SIEM allows few requests per minute, all incidents arrive, over several reads.

        If each throttled request made the provider start the read again, the read would never end.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(12 * PAGE)
            harness.simulator.most_per_minute = 8
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_a_failing_siem_gets_few_requests(self) -> None:
        """A read that fails sends only a few requests.

        Otherwise, the provider's requests could keep an overloaded SIEM from recovering.
        """
        async with self.harness() as harness:
            await _begin(harness)
            harness.simulator.fail(Fault.ERROR, times=1_000)
            already, reads = harness.http.count, 5
            for _ in range(reads):
                await harness.reader.failure()
                harness.clock.advance(minutes=1)
            each = (harness.http.count - already) / reads
            expect(each <= _MOST_A_READ, f"{each:.0f} requests for each failing read")

    @rule
    async def test_a_poison_record_does_not_stop_the_feed(self) -> None:
        """If every page with a certain incident fails, all other incidents arrive, and a page
        reports this one as lost.

        Otherwise, the incident would block all others, or nobody would notice that it is missing.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            await harness.arrive()
            for _ in range(2 * PAGE):
                harness.put()
                harness.clock.advance(minutes=2)
            poison = harness.put()
            harness.siem.poisoned.add(poison.id)
            for _ in range(2 * PAGE):
                harness.clock.advance(minutes=2)
                harness.put()
            await harness.persist()
            harness.expect_all(but=poison)
            expect(harness.store.lost, "no page reports the loss in `covered`")

    async def _expect_delay(self, fault: Fault) -> None:
        for shape in self._shapes(fault):
            async with self._begun(shape) as harness:
                harness.simulator.retry_after = _DELAY
                harness.simulator.fail(fault)
                error = await harness.reader.failure()
                expect_failure(error, TryLater, shape)
                if not shape or harness.simulator.sends_delays:
                    _expect_after(error, shape)
                await harness.persist()
                harness.expect_all()

    async def _expect_recovery(self, fault: Fault, wanted: type[Exception]) -> None:
        for shape in self._shapes(fault):
            async with self._begun(shape) as harness:
                harness.simulator.fail(fault)
                expect_failure(await harness.reader.failure(), wanted, shape)
                await harness.persist()
                harness.expect_all()

    def _shapes(self, fault: Fault) -> Sequence[str]:
        """Return the shapes in which a fault comes, for messages.

        The second shape is the vendor's own, if the simulator overrides `refuse`.
        """
        has_own = self.simulator.refuse is not VendorApi.refuse and fault in REFUSALS
        return ("", OWN_SHAPE) if has_own else ("",)

    @asynccontextmanager
    async def _begun(self, shape: str = "") -> AsyncGenerator[HttpHarness, None]:
        """Yield a harness that has read, and whose requests fail in this shape."""
        async with self.harness() as harness:
            await _begin(harness)
            harness.simulator.refuses_faults = bool(shape)
            yield harness


def _expect_after(error: Exception | None, shape: str) -> None:
    after = getattr(error, "after", None)
    seen = f"{describe_error(error)}, with the delay {after}, expected {_DELAY}{shape}"
    expect(after is not None and abs(after - _DELAY) <= _ROUGHLY, seen)


async def _begin(harness: HttpHarness) -> None:
    """Read one incident, and add another one."""
    harness.put()
    await harness.arrive()
    harness.put()
    harness.settle()
