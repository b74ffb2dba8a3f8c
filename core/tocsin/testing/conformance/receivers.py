"""Rules for receiver responses and health checks."""

from __future__ import annotations

from urllib.parse import unquote

from tocsin.errors import Broken, CredentialsRefused, Refused, TryLater
from tocsin.testing.conformance.rules import (
    describe_error,
    does_not_apply,
    expect,
    expect_failure,
    rule,
)
from tocsin.testing.conformance.scenarios import ChannelScenario, ScenarioSuite
from tocsin.testing.conformance.settings import expect_no_secret_sent
from tocsin.testing.faults import Fault


class ReceiverRules(ScenarioSuite):
    """Rules for the responses of receivers."""

    @rule
    async def test_refused_credentials_raise_at_every_step(self) -> None:
        """A 401 or 403 response raises `CredentialsRefused` at every step.

        Tocsin puts the delivery on hold, with the reason, until an operator fixes the credentials.
        """
        for story in self.scenarios:
            steps, _ = await self.count_steps(story)
            for step in range(steps):
                await self._expect_refusals(story, step)

    async def _expect_refusals(self, story: ChannelScenario, step: int) -> None:
        """Test a step with one status, and the step of the next attempt with the other one."""
        statuses = (Fault.UNAUTHORIZED, Fault.FORBIDDEN)
        async with self.harness() as harness:
            event = await story(harness)
            for status in statuses if step % 2 else reversed(statuses):
                before = len(harness.simulator.requests)
                for more in range(2):  # the first may only be an expired session
                    harness.simulator.fail(status, after=step + more)
                error = await harness.failure(harness.attempt(event))
                harness.simulator.heal()
                harness.clock.advance(minutes=5)  # the receiver's search has caught up
                is_over = error is None and len(harness.simulator.requests) <= before + step
                where = f"{event.event_type}, request {step + 1}, {status}"
                is_refused = isinstance(error, CredentialsRefused)
                expect(is_refused or is_over, f"{where}: {describe_error(error)}")

    @rule
    async def test_a_busy_receiver_is_retried_after_its_delay(self) -> None:
        """A 429 response raises `TryLater` with `throttled=True` and the delay from Retry-After.

        After such an error, all deliveries to the receiver wait, not just this one.
        """
        async with self.harness() as harness:
            harness.simulator.fail(Fault.THROTTLED)
            error = await harness.failure(harness.attempt(harness.alert()))
            expect_failure(error, TryLater)
            asked = isinstance(error, TryLater) and error.throttled and error.after
            expect(asked == harness.simulator.retry_after, f"throttled, after {asked}")

    @rule
    async def test_a_broken_receiver_is_retried(self) -> None:
        """A 500 response, an HTML page or a truncated response raises `TryLater` or `Broken`.

        A proxy can return such a response, for example a login page, although the receiver has not
        accepted the event.
        """
        for fault in (Fault.ERROR, Fault.LOGIN_PAGE, Fault.TRUNCATED, Fault.CUT):
            async with self.harness() as harness:
                harness.simulator.fail(fault)
                error = await harness.failure(harness.attempt(harness.alert()))
                passing = isinstance(error, TryLater | Broken)
                expect(passing and not isinstance(error, Refused), f"{error!r:.200} for {fault}")

    @rule
    async def test_no_secret_is_in_a_url(self) -> None:
        """Secrets are sent in a header or body, never in the URL.

        URLs appear in proxy logs and error messages.
        """
        async with self.harness() as harness:
            await harness.bring(harness.alert())
            await harness.channel.check()
            sent = " ".join(unquote(asked.path) for asked in harness.simulator.requests)
            expect_no_secret_sent(harness.channel, sent)

    @rule
    async def test_check_of_a_working_receiver_has_no_problems(self) -> None:
        """If the receiver works, `check` returns a `Health` without problems and creates nothing.

        `check` runs repeatedly on production systems.
        """
        async with self.harness() as harness:
            health = await harness.channel.check()
            expect(health.detail and not health.problems, f"{health!r:.300}")
            expect(not harness.objects, f"{harness.objects!r:.300}")

    @rule
    async def test_check_reports_all_missing_permissions(self) -> None:
        """`check` lists every missing permission at once.

        Operators should see missing permissions during setup, before the first incident.
        """
        if not self.permissions:
            does_not_apply("the receiver does not report permissions")
        async with self.harness() as harness:
            for lacking in (self.permissions, self.permissions[:1]):
                harness.simulator.lacks = set(lacking)
                problems = "\n".join((await harness.channel.check()).problems)
                silent = [permission for permission in lacking if permission not in problems]
                expect(not silent, f"{', '.join(silent)} not named: {problems!r:.300}")

    @rule
    async def test_check_raises_for_wrong_credentials(self) -> None:
        """`check` raises `CredentialsRefused` for 401.

        Otherwise, operators would learn of a wrong key only from deliveries on hold.
        """
        async with self.harness() as harness:
            for after in range(2):
                harness.simulator.fail(Fault.UNAUTHORIZED, after=after)
            expect_failure(await harness.failure(harness.channel.check()), CredentialsRefused)
