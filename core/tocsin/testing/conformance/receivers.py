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
from tocsin.testing.conformance.settings import iter_secrets
from tocsin.testing.faults import Fault


class ReceiverRules(ScenarioSuite):
    """What the receiver says."""

    @rule
    async def test_credentials_that_are_not_taken_wait_for_the_operator(self) -> None:
        """401 and 403 raise `CredentialsRefused`, at every step.

        The delivery waits until someone has mended that, and its reason says so.
        """
        for story in self.scenarios:
            steps, _ = await self.count_steps(story)
            for step in range(steps):
                await self._expect_refusals(story, step)

    async def _expect_refusals(self, story: ChannelScenario, step: int) -> None:
        """Try out a step with one status, and where the next attempt is then with the other."""
        statuses = (Fault.UNAUTHORIZED, Fault.FORBIDDEN)
        async with self.harness() as lab:
            event = await story(lab)
            for status in statuses if step % 2 else reversed(statuses):
                before = len(lab.simulator.requests)
                for more in range(2):  # a first one may only be a session that has ended
                    lab.simulator.fail(status, after=step + more)
                error = await lab.failure(lab.attempt(event))
                lab.simulator.heal()
                lab.clock.advance(minutes=5)  # a search has learned by then of what was made
                is_over = error is None and len(lab.simulator.requests) <= before + step
                where = f"{event.event_type}, request {step + 1}, {status}"
                told = isinstance(error, CredentialsRefused) or is_over
                expect(told, f"{where}: {describe_error(error)}")

    @rule
    async def test_a_busy_receiver_is_told_later(self) -> None:
        """429 raises `TryLater` that is `throttled`, with the delay that was asked for.

        Everything that goes there waits then, and not only this.
        """
        async with self.harness() as lab:
            lab.simulator.fail(Fault.THROTTLED)
            error = await lab.failure(lab.attempt(lab.alert()))
            expect_failure(error, TryLater)
            asked = isinstance(error, TryLater) and error.throttled and error.after
            expect(asked == lab.simulator.retry_after, f"throttled, after {asked}")

    @rule
    async def test_a_receiver_that_is_broken_is_tried_again(self) -> None:
        """500, HTML and half an answer raise what is tried again, never `Refused`.

        A login page with status 200 is no receipt.
        """
        for fault in (Fault.ERROR, Fault.LOGIN_PAGE, Fault.TRUNCATED, Fault.CUT):
            async with self.harness() as lab:
                lab.simulator.fail(fault)
                error = await lab.failure(lab.attempt(lab.alert()))
                passing = isinstance(error, TryLater | Broken)
                expect(passing and not isinstance(error, Refused), f"{error!r:.200} for {fault}")

    @rule
    async def test_no_secret_is_in_an_address(self) -> None:
        """A secret is sent in a header or a body, never in the address.

        Addresses are written into the logs of every proxy on the way, and into error messages.
        """
        async with self.harness() as lab:
            await lab.bring(lab.alert())
            await lab.channel.check()
            sent = " ".join(unquote(asked.path) for asked in lab.simulator.requests)
            shown = [name for name, secret in iter_secrets(lab.channel) if secret in sent]
            expect(not shown, f"the secret of `{', '.join(shown)}` in an address")

    @rule
    async def test_check_says_that_all_is_well_and_changes_nothing(self) -> None:
        """`check` returns a `Health` without problems where all is well, and makes nothing.

        It is run again and again, on systems where people work.
        """
        async with self.harness() as lab:
            health = await lab.channel.check()
            expect(health.detail and not health.problems, f"{health!r:.300}")
            expect(not lab.objects, f"{lab.objects!r:.300}")

    @rule
    async def test_check_names_every_permission_that_is_missing(self) -> None:
        """`check` names each permission that is missing, all at once.

        Whoever sets it up learns of them before the first incident does.
        """
        if not self.permissions:
            does_not_apply("its receiver does not say what may be done there")
        async with self.harness() as lab:
            for lacking in (self.permissions, self.permissions[:1]):
                lab.simulator.lacks = set(lacking)
                problems = "\n".join((await lab.channel.check()).problems)
                silent = [it for it in lacking if it not in problems]
                expect(not silent, f"nothing is said of {', '.join(silent)}: {problems!r:.300}")

    @rule
    async def test_check_says_that_credentials_are_wrong(self) -> None:
        """`check` raises `CredentialsRefused` for 401.

        Whoever sets it up learns of a wrong key at once, and not from deliveries that wait.
        """
        async with self.harness() as lab:
            for after in range(2):
                lab.simulator.fail(Fault.UNAUTHORIZED, after=after)
            expect_failure(await lab.failure(lab.channel.check()), CredentialsRefused)
