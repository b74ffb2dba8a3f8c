"""Rules for pushed requests: authentication and contents."""

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
    """What a provider that is sent to does with a request."""

    @rule
    async def test_a_token_opens(self) -> None:
        """A request that shows the token is taken, as `Bearer` or as the password of `Basic`.

        Most senders can do nothing but set a header, and some only ask for a password.
        """
        async with self.harness() as lab:
            basic = base64.b64encode(f"sender:{TOKEN}".encode()).decode()
            for shown in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
                received = await lab.receive(_one(self, lab), Authorization=shown)
                expect(len(received.incidents) == 1, f"{received}")

    @rule
    async def test_a_wrong_token_is_refused(self) -> None:
        """A request with another token, or without one, raises `CredentialsRefused`.

        Anyone could invent incidents, or bury the real ones among them.
        """
        async with self.harness() as lab:
            body = _one(self, lab)
            for shown in ("", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"):
                await _expect_refused(lab, body, Authorization=shown)

    @rule
    async def test_a_signature_opens(self) -> None:
        """A request that is signed as Standard Webhooks have it is taken.

        A signature proves the body as well, and shows no secret on the way.
        """
        async with self.harness() as lab:
            self._signs()
            body = _one(self, lab)
            received = await lab.receive(body, **lab.signed(body))
            expect(len(received.incidents) == 1, f"{received}")

    @rule
    async def test_a_body_that_was_changed_is_refused(self) -> None:
        """A signature of another body raises `CredentialsRefused`.

        Whoever is in between could write what they like.
        """
        async with self.harness() as lab:
            self._signs()
            signed = lab.signed(_one(self, lab))
            await _expect_refused(lab, _one(self, lab), **signed)

    @rule
    async def test_an_old_signature_is_refused(self) -> None:
        """A signature of ten minutes ago, or ahead, raises `CredentialsRefused`.

        A request that someone has recorded could be sent again at any time.
        """
        async with self.harness() as lab:
            self._signs()
            body = _one(self, lab)
            signed = lab.signed(body)
            for minutes in (10, -20):
                lab.clock.advance(minutes=minutes)
                await _expect_refused(lab, body, **signed)

    @rule
    async def test_a_body_that_is_nothing_is_refused(self) -> None:
        """A body that cannot be understood raises `Refused`, whatever it is.

        The sender is to be told: what was answered with success is never sent again.
        """
        async with self.harness() as lab:
            for body in _UNREADABLE:
                try:
                    received = await lab.receive(body)
                except Refused:
                    continue
                except Exception as error:  # noqa: BLE001 - it is what the rule is about
                    expect(kept=False, seen=f"{describe_error(error)} for {body[:20]!r}")
                expect(received.rejected, f"{body[:20]!r} was taken, and nothing came of it")

    @rule
    async def test_a_request_that_comes_twice_is_one(self) -> None:
        """The same request again has the same `external_id`.

        Senders repeat what was not answered in time.
        """
        async with self.harness() as lab:
            body = _one(self, lab)
            for _ in range(2):
                lab.store.add(await lab.receive(body))
                lab.clock.advance(minutes=1)
            names = list(lab.store.incidents)
            expect(len(names) == 1, f"one request is {names}")

    @rule
    async def test_a_bad_record_leaves_the_others(self) -> None:
        """Of several records in a request, one that cannot be understood is rejected alone.

        To refuse them all makes the sender send them all again, for ever.
        """
        async with self.harness() as lab:
            if not self.batches:
                does_not_apply("a request holds one record")
            cases = [lab.case(), lab.case(malformed=True), lab.case()]
            received = await lab.receive(self.body(*map(lab.show, cases)))
            seen = (
                f"{len(received.incidents)} were read of 2, {len(received.rejected)} rejected of 1"
            )
            expect((len(received.incidents), len(received.rejected)) == (2, 1), seen)

    @rule
    async def test_no_secret_is_told(self) -> None:
        """No token or secret stands in an error or a log.

        Both are shown to people, and kept.
        """
        async with self.harness() as lab:
            body, told = _one(self, lab), list[str]()
            guesses = ({"Authorization": f"Bearer {TOKEN[:-1]}"}, lab.signed(b"another body"))
            for fields in guesses:
                told.append(describe_error(await _error(lab, body, **fields)))
            told += [describe_error(await _error(lab, b"{")), *map(str, lab.logged.entries)]
            secrets = (TOKEN, TOKEN[:-1], SECRET)
            places = [text for text in told if any(secret in text for secret in secrets)]
            expect(not places, f"{places}")

    @rule
    async def test_check_says_that_all_is_well(self) -> None:
        """`check` names no problem where there is none.

        An operator who is told of one looks for it.
        """
        async with self.harness() as lab:
            problems = (await lab.provider.check()).problems
            expect(not problems, f"problems: {problems}")

    def _signs(self) -> None:
        if "secret" not in self.provider.Settings.model_fields:
            does_not_apply("it has no setting `secret`")


def _one(suite: PushConformance, lab: PushHarness) -> bytes:
    return suite.body(lab.show(lab.case()))


async def _error(lab: PushHarness, body: bytes, **fields: str) -> Exception | None:
    try:
        await lab.receive(body, **fields)
    except Exception as error:  # noqa: BLE001 - it is what the rules are about
        return error
    return None


async def _expect_refused(lab: PushHarness, body: bytes, **fields: str) -> None:
    error = await _error(lab, body, **fields)
    seen = (
        f"{describe_error(error)} for {sorted(fields)}, where CredentialsRefused was to be raised"
    )
    expect(isinstance(error, CredentialsRefused), seen)
