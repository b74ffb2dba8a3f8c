"""Rules for enricher failures."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote

from tocsin.errors import Broken, CredentialsRefused, PluginFailure, TryLater
from tocsin.model import Health
from tocsin.testing.conformance.enricher_harness import DELAY, EnricherHarness, EnricherSuite
from tocsin.testing.conformance.rules import describe_error, expect, expect_failure, rule
from tocsin.testing.conformance.settings import iter_secrets
from tocsin.testing.faults import Fault


class EnricherFailureRules(EnricherSuite):
    """What an enricher does when its source fails."""

    @rule
    async def test_not_found_is_nothing_known(self) -> None:
        """404 means that nothing is known, and nothing is returned.

        It is how most sources say it; raised, it would be a gap in every report.
        """
        async with self.served_harness() as lab:
            lab.fault = HTTPStatus.NOT_FOUND
            error = await lab.failure(lab.ask(self.known))
            expect(error is None, f"{describe_error(error)}")

    @rule
    async def test_throttling_is_waited_out(self) -> None:
        """429 raises `TryLater` with the delay of Retry-After, and `throttled`.

        The enricher is then left alone so long, by everything that would ask it.
        """
        async with self.served_harness() as lab:
            error = await _failure(lab, Fault.THROTTLED)
            expect_failure(error, TryLater)
            expect(
                getattr(error, "after", None) == DELAY, f"{describe_error(error)}, not the delay"
            )
            expect(
                getattr(error, "throttled", False), f"{describe_error(error)}, without `throttled`"
            )

    @rule
    async def test_refused_credentials_are_told_as_such(self) -> None:
        """401 raises `CredentialsRefused`.

        An operator has to mend that; nobody is asked again until then.
        """
        async with self.served_harness() as lab:
            expect_failure(await _failure(lab, Fault.UNAUTHORIZED), CredentialsRefused)

    @rule
    async def test_an_error_is_no_answer(self) -> None:
        """5xx raises `Broken` or `TryLater`.

        Taken for "nothing is known" it clears everybody as long as the source is ill.
        """
        async with self.served_harness() as lab:
            for fault in (Fault.ERROR, Fault.BAD_GATEWAY, Fault.UNAVAILABLE):
                await _expect_unavailable(lab, fault)

    @rule
    async def test_what_is_no_json_is_no_answer(self) -> None:
        """HTML, nothing at all and half an answer with status 200 raise `Broken` or `TryLater`.

        Login pages and proxies answer so; taken for "nothing is known" they clear everybody.
        """
        async with self.served_harness() as lab:
            for fault in (Fault.LOGIN_PAGE, Fault.EMPTY, Fault.TRUNCATED, Fault.CUT):
                await _expect_unavailable(lab, fault)

    @rule
    async def test_json_without_what_is_needed_is_no_answer(self) -> None:
        """JSON that has none of the expected members raises `Broken`.

        A new version of the API must not look like a source that knows nothing.
        """
        async with self.served_harness() as lab:
            expect_failure(await _failure(lab, Fault.UNEXPECTED), Broken)

    @rule
    async def test_a_server_that_is_away_passes(self) -> None:
        """A server that cannot be reached raises `TryLater`.

        The report then names the gap, and the next one may have the answer.
        """
        async with self.served_harness() as lab:
            await lab.hang_up()
            expect_failure(await lab.failure(lab.ask(self.known[:1])), TryLater)

    @rule
    async def test_no_secret_is_in_an_address(self) -> None:
        """A secret is sent in a header or a body, never in the address.

        Addresses are written into the logs of every proxy on the way, and into error messages.
        """
        async with self.served_harness() as lab:
            await lab.ask(self.known)
            sent = " ".join(unquote(request.raw_path) for request in lab.requests)
            shown = [name for name, secret in iter_secrets(lab.enricher) if secret in sent]
            expect(not shown, f"the secret of `{', '.join(shown)}` in an address")

    @rule
    async def test_check_says_that_all_is_well(self) -> None:
        """`check` returns `Health` with a sentence where the source can be asked.

        It is what `tocsin check` shows before anything depends on it.
        """
        async with self.harness() as lab:
            health = await lab.enricher.check()
            expect(isinstance(health, Health) and health.detail, f"{health!r:.200}")

    @rule
    async def test_check_says_what_is_wrong(self) -> None:
        """`check` raises `CredentialsRefused` for 401, and other failures as they are.

        Whoever sets it up learns of a wrong key at once, and not from a gap in a report.
        """
        async with self.served_harness() as lab:
            for fault, wanted in (
                (Fault.UNAUTHORIZED, CredentialsRefused),
                (Fault.ERROR, PluginFailure),
            ):
                lab.fault = fault
                expect_failure(await lab.failure(lab.enricher.check()), wanted)


async def _failure(lab: EnricherHarness, fault: Fault) -> Exception | None:
    lab.fault = fault
    return await lab.failure(lab.ask(lab.suite.known[:1]))


async def _expect_unavailable(lab: EnricherHarness, fault: Fault) -> None:
    error = await _failure(lab, fault)
    seen = f"{describe_error(error)} for an answer that is {fault}"
    expect(isinstance(error, Broken | TryLater), seen)
