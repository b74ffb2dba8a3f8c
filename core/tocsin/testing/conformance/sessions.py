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
    """How a provider signs in, and what it says when it may not."""

    @rule
    async def test_a_session_that_ends_early_is_begun_anew(self) -> None:
        """401 in the middle of a read signs in again, once, and the read goes on.

        Sessions end when the SIEM wants; nobody need be woken for it.
        """
        async with self.harness() as lab:
            _has_sessions(lab)
            lab.put()
            await lab.arrive()
            lab.put()
            lab.simulator.fail(Fault.REVOKED)
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_a_session_is_renewed_before_it_ends(self) -> None:
        """No request is made with a session that is known to have ended.

        SIEMs count requests that they refuse, and lock out those that make many.
        """
        async with self.harness() as lab:
            _has_sessions(lab)
            await lab.arrive()
            for _ in range(3):
                lab.clock.advance(seconds=lab.simulator.session_lifetime.total_seconds() - 1)
                await lab.reader.read()
                lab.clock.advance(seconds=2)
                await lab.reader.read()
            expect(_UNAUTHORIZED not in lab.http.statuses, "requests were answered 401")

    @rule
    async def test_a_sign_in_that_fails_passes(self) -> None:
        """A sign-in that meets a busy server raises `TryLater`, not `CredentialsRefused`.

        Operators would change credentials that are right.
        """
        async with self.harness() as lab:
            _has_sessions(lab)
            lab.put()
            lab.simulator.fail(Fault.UNAVAILABLE, where=lab.simulator.open_paths[0])
            expect_failure(await lab.reader.failure(), TryLater)
            await lab.persist()
            lab.settle()
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_wrong_credentials_are_refused(self) -> None:
        """Credentials that the SIEM does not know raise `CredentialsRefused`, after few requests.

        Tried again and again they lock the account, and nobody is told what is wrong.
        """
        async with self.harness() as lab:
            await lab.restart(**lab.wrong_settings())
            lab.settle()
            already = lab.http.count
            expect_failure(await lab.reader.failure(), CredentialsRefused)
            count = lab.http.count - already
            expect(count <= _FEW, f"{count} requests with credentials that are wrong")

    @rule
    async def test_check_says_that_all_is_well(self) -> None:
        """`check` names no problem where there is none.

        An operator who is told of one looks for it.
        """
        async with self.harness() as lab:
            health = await lab.provider.check()
            expect(not health.problems, f"problems: {health.problems}")
            expect(health.detail, "no detail")

    @rule
    async def test_check_names_wrong_credentials(self) -> None:
        """`check` says so where the credentials are wrong.

        It is what the operator runs before going home.
        """
        async with self.harness() as lab:
            await lab.restart(**lab.wrong_settings())
            await _expect_problem(lab)

    @rule
    async def test_check_names_a_missing_permission(self) -> None:
        """`check` says so where the SIEM answers 403.

        Signing in is not all that is needed: `check` asks for what a read asks for.
        """
        async with self.harness() as lab:
            await lab.provider.check()
            lab.simulator.fail(Fault.FORBIDDEN, times=_FEW)
            await _expect_problem(lab)

    @rule
    async def test_check_names_a_siem_that_is_away(self) -> None:
        """`check` says so where the SIEM cannot be reached.

        It is the first thing that goes wrong: a name, a port, a firewall.
        """
        async with self.harness() as lab:
            await lab.hang_up()
            await _expect_problem(lab)

    @rule
    async def test_permissions_are_named(self) -> None:
        """`permissions` names what the credentials must be allowed to do.

        Otherwise operators give them everything, or guess.
        """
        if not self.provider.Settings.secret_fields():
            does_not_apply("it has no credentials")
        expect(self.provider.permissions, "`permissions` is empty")


def _has_sessions(lab: HttpHarness) -> None:
    if not lab.simulator.open_paths:
        does_not_apply("the simulator names no open path: there is no sign-in")


async def _expect_problem(lab: HttpHarness) -> None:
    """Expect that `check` says what is wrong: as a problem, or by raising a `PluginFailure`."""
    try:
        health = await lab.provider.check()
    except PluginFailure as error:
        health = Health(detail="", problems=(str(error),))
    expect(any(problem.strip() for problem in health.problems), f"no problem: {health.detail}")
