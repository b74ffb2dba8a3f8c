"""Rules for enricher failures."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import unquote

from tocsin.errors import Broken, CredentialsRefused, PluginFailure, TryLater
from tocsin.model import Health
from tocsin.testing.conformance.enricher_harness import DELAY, EnricherHarness, EnricherSuite
from tocsin.testing.conformance.rules import (
    OWN_SHAPE,
    describe_error,
    expect,
    expect_failure,
    rule,
)
from tocsin.testing.conformance.settings import expect_no_secret_sent
from tocsin.testing.faults import Fault


class EnricherFailureRules(EnricherSuite):
    """Rules for failures of an enricher's source."""

    @rule
    async def test_not_found_means_no_enrichment(self) -> None:
        """After a 404 response, the enricher does not return an enrichment.

        Most sources return 404 for entities that they do not know. An exception would add a gap to
        every report.
        """
        async with self.served_harness() as harness:
            harness.fault = HTTPStatus.NOT_FOUND
            error = await harness.failure(harness.ask(self.known))
            expect(error is None, f"{describe_error(error)}")

    @rule
    async def test_throttling_is_waited_out(self) -> None:
        """A 429 response raises `TryLater` with `throttled=True` and the delay from Retry-After.

        After such an error, Tocsin does not send any of the enricher's requests until the delay has
        passed.
        """
        async with self.served_harness() as harness:
            for shape in self._shapes(harness):
                error = await _failure(harness, Fault.THROTTLED)
                expect_failure(error, TryLater, shape)
                is_delayed = getattr(error, "after", None) == DELAY
                is_delayed = is_delayed or (shape and not harness.sends_delays)
                expect(is_delayed, f"{describe_error(error)}, without the delay{shape}")
                is_throttled = getattr(error, "throttled", False)
                expect(is_throttled, f"{describe_error(error)}, without `throttled`{shape}")

    @rule
    async def test_refused_credentials_raise(self) -> None:
        """A 401 response raises `CredentialsRefused`.

        Tocsin does not send further requests until an operator fixes the credentials.
        """
        async with self.served_harness() as harness:
            for shape in self._shapes(harness):
                error = await _failure(harness, Fault.UNAUTHORIZED)
                expect_failure(error, CredentialsRefused, shape)

    @rule
    async def test_an_error_response_raises(self) -> None:
        """A 5xx response raises `Broken` or `TryLater`.

        If the error counted as "no data", every entity would look harmless while the source is
        down.
        """
        async with self.served_harness() as harness:
            for shape in self._shapes(harness):
                for fault in (Fault.ERROR, Fault.BAD_GATEWAY, Fault.UNAVAILABLE):
                    await _expect_unavailable(harness, fault, shape)

    @rule
    async def test_an_error_with_status_200_raises(self) -> None:
        """A 200 response with `{"error": ...}` raises an error.

        JSON-RPC, GraphQL and many gateways report errors with status 200. If the response counted
        as "no data", entities would look harmless.
        """
        async with self.served_harness() as harness:
            harness.alter = lambda _: {"error": {"code": 500, "message": "internal error"}}
            error = await harness.failure(harness.ask(self.known[:1]))
            expect_failure(error, PluginFailure)

    @rule
    async def test_a_body_that_is_not_json_raises(self) -> None:
        """A 200 response that is HTML, empty or truncated raises `Broken` or `TryLater`.

        Proxies send such responses, for example login pages. If a response counted as "no data",
        entities would look harmless.
        """
        async with self.served_harness() as harness:
            for fault in (Fault.LOGIN_PAGE, Fault.EMPTY, Fault.TRUNCATED, Fault.CUT):
                await _expect_unavailable(harness, fault)

    @rule
    async def test_json_without_expected_members_raises(self) -> None:
        """JSON without any of the expected members raises `Broken`.

        Otherwise, after a change to the API, the source would look as if it had no data.
        """
        async with self.served_harness() as harness:
            expect_failure(await _failure(harness, Fault.UNEXPECTED), Broken)

    @rule
    async def test_an_unreachable_server_is_temporary(self) -> None:
        """An unreachable server raises `TryLater`.

        After `TryLater`, the report lists a gap, and a later report can still contain the
        enrichment.
        """
        async with self.served_harness() as harness:
            await harness.hang_up()
            expect_failure(await harness.failure(harness.ask(self.known[:1])), TryLater)

    @rule
    async def test_no_secret_is_in_a_url(self) -> None:
        """Secrets are sent in a header or body, never in the URL.

        URLs appear in proxy logs and error messages.
        """
        async with self.served_harness() as harness:
            await harness.ask(self.known)
            sent = " ".join(unquote(request.raw_path) for request in harness.requests)
            expect_no_secret_sent(harness.enricher, sent)

    @rule
    async def test_check_without_problems(self) -> None:
        """`check` returns a `Health` with a detail if the source is available.

        `tocsin check` shows the detail, so operators can check the source before investigations
        need it.
        """
        async with self.harness() as harness:
            health = await harness.enricher.check()
            expect(isinstance(health, Health) and health.detail, f"{health!r:.200}")

    @rule
    async def test_check_raises_for_failures(self) -> None:
        """`check` raises `CredentialsRefused` for a 401 response and a `PluginFailure` for a 500
        response.

        Otherwise, operators would learn of a wrong key only from a gap in a report.
        """
        async with self.served_harness() as harness:
            for shape in self._shapes(harness):
                for fault, wanted in (
                    (Fault.UNAUTHORIZED, CredentialsRefused),
                    (Fault.ERROR, PluginFailure),
                ):
                    harness.fault = fault
                    error = await harness.failure(harness.enricher.check())
                    expect_failure(error, wanted, shape)

    def _shapes(self, harness: EnricherHarness) -> Iterator[str]:
        """Yield the shape in which the server then fails, for messages.

        The second shape is the source's own, if the suite overrides `refuse`.
        """
        yield ""
        if type(self).refuse is not EnricherSuite.refuse:
            harness.refuses_faults = True
            yield OWN_SHAPE


async def _failure(harness: EnricherHarness, fault: Fault) -> Exception | None:
    harness.fault = fault
    return await harness.failure(harness.ask(harness.suite.known[:1]))


async def _expect_unavailable(harness: EnricherHarness, fault: Fault, shape: str = "") -> None:
    error = await _failure(harness, fault)
    seen = f"{describe_error(error)} for the fault {fault}{shape}"
    expect(isinstance(error, Broken | TryLater), seen)
