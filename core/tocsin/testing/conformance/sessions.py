"""Rules for credentials and sessions."""

from __future__ import annotations

from tocsin.errors import CredentialsRefused, PluginFailure, TryLater
from tocsin.model import Health
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.rules import does_not_apply, expect, expect_failure, rule
from tocsin.testing.faults import Fault

_UNAUTHORIZED = 401
_FEW = 6


class SessionRules(HttpConformance):
    """Rules for signing in, and for refused credentials."""

    @rule
    async def test_a_revoked_session_is_replaced(self) -> None:
        """After a 401 response during a read, the provider signs in again once, and the
        read continues.

        Sessions can end at any time, and the provider must recover without an operator.
        """
        async with self.harness() as harness:
            _has_sessions(harness)
            harness.put()
            await harness.arrive()
            harness.put()
            harness.simulator.fail(Fault.REVOKED)
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_a_session_is_renewed_before_it_ends(self) -> None:
        """No request uses a session after its known expiry time.

        SIEMs count refused requests and lock out clients that have too many of them.
        """
        async with self.harness() as harness:
            _has_sessions(harness)
            await harness.arrive()
            for _ in range(3):
                harness.clock.advance(
                    seconds=harness.simulator.session_lifetime.total_seconds() - 1
                )
                await harness.reader.read()
                harness.clock.advance(seconds=2)
                await harness.reader.read()
            expect(_UNAUTHORIZED not in harness.http.statuses, "requests received 401")

    @rule
    async def test_a_failed_sign_in_is_temporary(self) -> None:
        """If the sign-in fails because the server is busy, the provider raises `TryLater`, not
        `CredentialsRefused`.

        Otherwise, operators would change valid credentials.
        """
        async with self.harness() as harness:
            _has_sessions(harness)
            harness.put()
            harness.simulator.fail(Fault.UNAVAILABLE, where=harness.simulator.open_paths[0])
            expect_failure(await harness.reader.failure(), TryLater)
            await harness.persist()
            harness.settle()
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_wrong_credentials_are_refused(self) -> None:
        """Wrong credentials raise `CredentialsRefused` after few requests.

        Repeated attempts can lock the account. The lock then hides that the credentials are wrong.
        """
        async with self.harness() as harness:
            await harness.restart(**harness.wrong_settings())
            harness.settle()
            already = harness.http.count
            expect_failure(await harness.reader.failure(), CredentialsRefused)
            count = harness.http.count - already
            expect(count <= _FEW, f"{count} requests with wrong credentials")

    @rule
    async def test_check_without_problems(self) -> None:
        """`check` does not report any problem if everything works.

        Operators investigate every reported problem.
        """
        async with self.harness() as harness:
            health = await harness.provider.check()
            expect(not health.problems, f"problems: {health.problems}")
            expect(health.detail, "no detail")

    @rule
    async def test_check_reports_wrong_credentials(self) -> None:
        """`check` reports wrong credentials.

        Operators run `check` after every configuration change.
        """
        async with self.harness() as harness:
            await harness.restart(**harness.wrong_settings())
            await _expect_problem(harness)

    @rule
    async def test_check_reports_a_missing_permission(self) -> None:
        """`check` reports a missing permission when the SIEM answers 403.

        Even if the sign-in works, the credentials can lack a permission. Therefore, `check` must
        request the same data as a read.
        """
        async with self.harness() as harness:
            await harness.provider.check()
            harness.simulator.fail(Fault.FORBIDDEN, times=_FEW)
            await _expect_problem(harness)

    @rule
    async def test_check_reports_an_unreachable_siem(self) -> None:
        """`check` reports an unreachable SIEM.

        Wrong host names, wrong ports and missing firewall rules are the most common mistakes.
        """
        async with self.harness() as harness:
            await harness.hang_up()
            await _expect_problem(harness)

    @rule
    async def test_permissions_are_named(self) -> None:
        """`permissions` lists the permissions that the credentials need.

        Otherwise, operators would have to guess or would grant all permissions.
        """
        if not self.provider.Settings.secret_fields():
            does_not_apply("the provider has no credentials")
        expect(self.provider.permissions, "`permissions` is empty")


def _has_sessions(harness: HttpHarness) -> None:
    if not harness.simulator.open_paths:
        does_not_apply("the simulator declares no open path, so there is no sign-in")


async def _expect_problem(harness: HttpHarness) -> None:
    """Check that `check` reports a problem, or raises a `PluginFailure`."""
    try:
        health = await harness.provider.check()
    except PluginFailure as error:
        health = Health(detail="", problems=(str(error),))
    expect(any(problem.strip() for problem in health.problems), f"no problem: {health.detail}")
