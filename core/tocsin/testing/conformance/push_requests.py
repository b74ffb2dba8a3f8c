"""Rules for the authentication and contents of pushed requests."""

from __future__ import annotations

import base64

from tocsin.errors import CredentialsRefused, Refused
from tocsin.testing.conformance.push_harness import SECRET, TOKEN, PushConformance, PushHarness
from tocsin.testing.conformance.rules import describe_error, does_not_apply, expect, rule

_UNREADABLE = (
    b"{",
    b"\xff\xfe\x00",
    b"null",
    b'"text"',
    b"7",
    b"<html></html>",
    b"[" * 100_000,
    b'{"a":' * 100_000,
)


class PushRequestRules(PushConformance):
    """Rules for pushed requests."""

    @rule
    async def test_a_valid_token_is_accepted(self) -> None:
        """A request with the token is accepted, as a `Bearer` token or as the password in `Basic`.

        Most senders can add a fixed header, but some can send only a user name and a password.
        """
        async with self.harness() as harness:
            basic = base64.b64encode(f"sender:{TOKEN}".encode()).decode()
            for shown in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
                received = await harness.receive(_one(self, harness), Authorization=shown)
                expect(len(received.incidents) == 1, f"{received}")

    @rule
    async def test_a_wrong_token_is_refused(self) -> None:
        """A request with a wrong token, or without one, raises `CredentialsRefused`.

        Otherwise, anyone could forge incidents or hide real ones among forged ones.
        """
        async with self.harness() as harness:
            body = _one(self, harness)
            for shown in ("", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"):
                await _expect_refused(harness, body, Authorization=shown)

    @rule
    async def test_a_valid_signature_is_accepted(self) -> None:
        """A request with a Standard Webhooks signature is accepted.

        A signature also protects the body from changes, and the request does not contain the
        secret.
        """
        async with self.harness() as harness:
            self._signs()
            body = _one(self, harness)
            received = await harness.receive(body, **harness.signed(body))
            expect(len(received.incidents) == 1, f"{received}")

    @rule
    async def test_a_changed_body_is_refused(self) -> None:
        """A signature that belongs to another body raises `CredentialsRefused`.

        Otherwise, an intermediary could change the body.
        """
        async with self.harness() as harness:
            self._signs()
            signed = harness.signed(_one(self, harness))
            await _expect_refused(harness, _one(self, harness), **signed)

    @rule
    async def test_an_old_signature_is_refused(self) -> None:
        """A signature whose time is ten minutes in the past or future raises `CredentialsRefused`.

        Otherwise, an attacker could replay a recorded request at any time.
        """
        async with self.harness() as harness:
            self._signs()
            body = _one(self, harness)
            signed = harness.signed(body)
            for minutes in (10, -20):
                harness.clock.advance(minutes=minutes)
                await _expect_refused(harness, body, **signed)

    @rule
    async def test_an_unreadable_body_is_refused(self) -> None:
        """A body that cannot be parsed raises `Refused`.

        Only an error tells the sender that Tocsin has not stored the request.
        """
        async with self.harness() as harness:
            for body in _UNREADABLE:
                try:
                    received = await harness.receive(body)
                except Refused:
                    continue
                except Exception as error:  # noqa: BLE001 - it is what the rule is about
                    expect(kept=False, seen=f"{describe_error(error)} for {body[:20]!r}")
                expect(
                    received.rejected,
                    f"{body[:20]!r} was accepted without an incident or a rejected record",
                )

    @rule
    async def test_a_repeated_request_is_one_incident(self) -> None:
        """A repeated request results in the same `external_id`.

        Senders repeat requests that time out.
        """
        async with self.harness() as harness:
            body = _one(self, harness)
            for _ in range(2):
                harness.store.add(await harness.receive(body))
                harness.clock.advance(minutes=1)
            names = list(harness.store.incidents)
            expect(len(names) == 1, f"one request became {names}")

    @rule
    async def test_a_malformed_record_is_rejected_alone(self) -> None:
        """A malformed record is rejected without affecting other records in the same request.

        If the whole request failed, the sender would repeat the request forever.
        """
        async with self.harness() as harness:
            if not self.batches:
                does_not_apply("a request holds only one record")
            cases = [harness.case(), harness.case(malformed=True), harness.case()]
            received = await harness.receive(self.body(*map(harness.show, cases)))
            seen = f"{len(received.incidents)} of 2 read, {len(received.rejected)} of 1 rejected"
            expect((len(received.incidents), len(received.rejected)) == (2, 1), seen)

    @rule
    async def test_no_secret_is_exposed(self) -> None:
        """No token or secret appears in errors or logs.

        Errors and logs are stored and shown to people.
        """
        async with self.harness() as harness:
            body, texts = _one(self, harness), list[str]()
            guesses = ({"Authorization": f"Bearer {TOKEN[:-1]}"}, harness.signed(b"another body"))
            for fields in guesses:
                texts.append(describe_error(await _error(harness, body, **fields)))
            texts += [
                describe_error(await _error(harness, b"{")),
                *map(str, harness.logged.entries),
            ]
            secrets = (TOKEN, TOKEN[:-1], SECRET)
            places = [text for text in texts if any(secret in text for secret in secrets)]
            expect(not places, f"{places}")

    @rule
    async def test_check_without_problems(self) -> None:
        """`check` does not report any problem if everything works.

        Operators investigate every reported problem.
        """
        async with self.harness() as harness:
            problems = (await harness.provider.check()).problems
            expect(not problems, f"problems: {problems}")

    def _signs(self) -> None:
        if "secret" not in self.provider.Settings.model_fields:
            does_not_apply("the provider has no setting `secret`")


def _one(suite: PushConformance, harness: PushHarness) -> bytes:
    return suite.body(harness.show(harness.case()))


async def _error(harness: PushHarness, body: bytes, **fields: str) -> Exception | None:
    try:
        await harness.receive(body, **fields)
    except Exception as error:  # noqa: BLE001 - it is what the rules are about
        return error
    return None


async def _expect_refused(harness: PushHarness, body: bytes, **fields: str) -> None:
    error = await _error(harness, body, **fields)
    seen = f"{describe_error(error)} for {sorted(fields)}, expected CredentialsRefused"
    expect(isinstance(error, CredentialsRefused), seen)
