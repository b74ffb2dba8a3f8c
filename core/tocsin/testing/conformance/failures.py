"""Rules for provider failures and recovery."""

from __future__ import annotations

from datetime import timedelta

from tocsin.errors import PluginFailure, Refused, TryLater
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.pagination import PAGE, SPREAD
from tocsin.testing.conformance.rules import describe_error, expect, expect_failure, rule
from tocsin.testing.faults import Fault

_DELAY = timedelta(seconds=90)
_ROUGHLY = timedelta(seconds=2)
_MOST_A_READ = 60


class FailureRules(HttpConformance):
    """What a provider does when its SIEM fails."""

    @rule
    async def test_throttling_for_seconds_is_waited_out(self) -> None:
        """429 with Retry-After in seconds raises `TryLater` with that delay.

        Whoever asks sooner is throttled for longer, or locked out (RFC 9110 section 10.2.3).
        """
        await self._expect_delay(Fault.THROTTLED)

    @rule
    async def test_throttling_until_a_date_is_waited_out(self) -> None:
        """429 with Retry-After as a date raises `TryLater` with the delay until then.

        RFC 9110 section 10.2.3 allows both forms, and proxies send this one.
        """
        await self._expect_delay(Fault.THROTTLED_UNTIL)

    @rule
    async def test_maintenance_is_waited_out(self) -> None:
        """503 with Retry-After raises `TryLater` with that delay.

        It is how a SIEM says that it will be back; all that waits asks again as soon as it may.
        """
        await self._expect_delay(Fault.UNAVAILABLE)

    @rule
    async def test_a_bad_gateway_passes(self) -> None:
        """502 raises `TryLater`, and nothing is missed once it is over.

        Taken for an answer without incidents, all that changed meanwhile is lost.
        """
        await self._expect_recovery(Fault.BAD_GATEWAY, TryLater)

    @rule
    async def test_an_error_of_the_siem_is_recovered_from(self) -> None:
        """500 raises `Broken` or `TryLater`, and nothing is missed once it is over.

        Taken for an answer without incidents, all that changed meanwhile is lost.
        """
        await self._expect_recovery(Fault.ERROR, PluginFailure)

    @rule
    async def test_a_connection_that_is_cut_passes(self) -> None:
        """A connection that ends in the middle of an answer raises, and nothing is missed.

        Half an answer may look like a whole one.
        """
        await self._expect_recovery(Fault.CUT, TryLater)

    @rule
    async def test_a_siem_that_is_away_passes(self) -> None:
        """A SIEM that cannot be reached raises `TryLater`, and nothing is missed once it is back.

        Machines restart at night, when nobody looks.
        """
        async with self.harness() as lab:
            await _begin(lab)
            await lab.hang_up()
            expect_failure(await lab.reader.failure(), TryLater)
            await lab.simulator.listen()
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_a_restart_of_the_siem_is_survived(self) -> None:
        """Nothing is missed over a restart of the SIEM, which forgets sessions and page tokens.

        What was good a minute ago is refused now, and has to be asked for anew.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            await _begin(lab)
            lab.put_many(3 * PAGE, every=SPREAD)
            lab.settle()
            await lab.reader.read(2)
            lab.simulator.fail(Fault.RESTARTED)
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_a_login_page_is_no_answer(self) -> None:
        """200 with the HTML of a login page raises, and nothing is missed once it is over.

        Proxies answer so when a session has ended. Read as no incidents, it is silence for good.
        """
        await self._expect_recovery(Fault.LOGIN_PAGE, PluginFailure)

    @rule
    async def test_a_partial_answer_is_no_answer(self) -> None:
        """206 raises, and nothing is missed once the answer is whole.

        Some of the SIEM's nodes did not answer in time: what they have is missing, and not absent.
        """
        await self._expect_recovery(Fault.PARTIAL, PluginFailure)

    @rule
    async def test_json_that_ends_early_is_no_answer(self) -> None:
        """An answer whose JSON ends in the middle raises, and nothing is missed.

        What could be read of it is not all that there was.
        """
        await self._expect_recovery(Fault.TRUNCATED, PluginFailure)

    @rule
    async def test_an_empty_body_is_no_answer(self) -> None:
        """200 without a body raises, and nothing is missed.

        It is not the answer of a SIEM that has nothing to tell.
        """
        await self._expect_recovery(Fault.EMPTY, PluginFailure)

    @rule
    async def test_a_missing_member_is_not_an_empty_list(self) -> None:
        """JSON without the member that holds the list raises, and nothing is missed.

        A vendor who renames it would otherwise silence the provider, which looks healthy.
        """
        await self._expect_recovery(Fault.UNEXPECTED, PluginFailure)

    @rule
    async def test_a_missing_permission_waits_for_a_person(self) -> None:
        """403 raises `CredentialsRefused`, or another kind of `Refused`, and is recovered from.

        It does not pass by itself: the operator is to be told, and the SIEM left in peace.
        """
        await self._expect_recovery(Fault.FORBIDDEN, Refused)

    @rule
    async def test_a_throttled_siem_is_read_to_the_end(self) -> None:
        """A SIEM that takes only a few requests a minute is read to the end, in several reads.

        A window that begins anew after each throttling never comes to its end.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(12 * PAGE)
            lab.simulator.most_per_minute = 8
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_a_failing_siem_is_not_hammered(self) -> None:
        """Reads that fail make few requests.

        A SIEM that is down for being asked too much is otherwise held down.
        """
        async with self.harness() as lab:
            await _begin(lab)
            lab.simulator.fail(Fault.ERROR, times=1_000)
            already, reads = lab.http.count, 5
            for _ in range(reads):
                await lab.reader.failure()
                lab.clock.advance(minutes=1)
            each = (lab.http.count - already) / reads
            expect(each <= _MOST_A_READ, f"{each:.0f} requests in each read that failed")

    @rule
    async def test_a_poison_record_does_not_stop_the_rest(self) -> None:
        """All but one incident arrive where one breaks every page it is on, and the ledger says so.

        Held up by it, nothing arrives any more until the vendor has mended it; passed over in
        silence, nobody knows that it is missing.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            await lab.arrive()
            for _ in range(2 * PAGE):
                lab.put()
                lab.clock.advance(minutes=2)
            poison = lab.put()
            lab.siem.poisoned.add(poison.id)
            for _ in range(2 * PAGE):
                lab.clock.advance(minutes=2)
                lab.put()
            await lab.persist()
            lab.expect_all(but=poison)
            expect(lab.store.lost, "no page says in `covered` what was lost")

    async def _expect_delay(self, fault: Fault) -> None:
        async with self.harness() as lab:
            await _begin(lab)
            lab.simulator.retry_after = _DELAY
            lab.simulator.fail(fault)
            error = await lab.reader.failure()
            expect_failure(error, TryLater)
            after = getattr(error, "after", None)
            seen = f"{describe_error(error)}, with the delay {after}, where {_DELAY} was asked for"
            expect(after is not None and abs(after - _DELAY) <= _ROUGHLY, seen)
            await lab.persist()
            lab.expect_all()

    async def _expect_recovery(self, fault: Fault, wanted: type[Exception]) -> None:
        async with self.harness() as lab:
            await _begin(lab)
            lab.simulator.fail(fault)
            expect_failure(await lab.reader.failure(), wanted)
            await lab.persist()
            lab.expect_all()


async def _begin(lab: HttpHarness) -> None:
    """Have something be read, and something new be there."""
    lab.put()
    await lab.arrive()
    lab.put()
    lab.settle()
