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
    """`comment`."""

    @rule
    async def test_a_comment_is_written_to_its_incident(self) -> None:
        """`comment` writes its text to the incident, and to no other.

        Analysts read it there, and act on it.
        """
        async with self.harness() as lab:
            self._writes()
            one, other = lab.put(), lab.put()
            await self._write(lab, one)
            _expect_texts(lab, one, _TEXT)
            _expect_texts(lab, other)

    @rule
    async def test_a_comment_stays_plain_text(self) -> None:
        """A comment reads as it was given: its markup, quotes and line breaks are its text.

        It quotes what attackers wrote, which must not become a link or a mention.
        """
        async with self.harness() as lab:
            self._writes()
            for text in _HOSTILE:
                case = lab.put()
                await self._write(lab, case, text=text)
                _expect_texts(lab, case, text)

    @rule
    async def test_a_key_is_written_once(self) -> None:
        """A comment is not written again for the same key, though the process has begun anew.

        What was written is written again after a crash: nobody knows that it was.
        """
        async with self.harness() as lab:
            self._writes()
            case = lab.put()
            for _ in range(2):
                await self._write(lab, case)
                await lab.restart()
            _expect_texts(lab, case, _TEXT)

    @rule
    async def test_another_key_is_another_comment(self) -> None:
        """A comment is written for each key, though keys begin alike and texts are the same.

        What a later investigation says would be missing.
        """
        async with self.harness() as lab:
            self._writes()
            case = lab.put()
            keys = (f"{_KEY}1", _KEY, f"{_KEY}0")
            for key in keys:
                await self._write(lab, case, key=key)
            _expect_texts(lab, case, *(_TEXT for _ in keys))

    @rule
    async def test_a_comment_whose_answer_was_lost_is_written_once(self) -> None:
        """A comment that was written, but never confirmed, is not written again with its key.

        Connections end at any time, and an incident with the same comment ten times is unreadable.
        """
        async with self.harness() as lab:
            self._writes()
            case = lab.put()
            lab.simulator.fail(Fault.LOST)
            for _ in range(_MOST_TRIES):
                error = await catch_failure(self._write(lab, case))
                if error is None:
                    break
                lab.wait_out(error)
            expect(error is None, f"{describe_error(error)}, though only one answer was lost")
            _expect_texts(lab, case, _TEXT)

    @rule
    async def test_a_comment_to_no_incident_is_refused(self) -> None:
        """`comment` raises `Refused` for an incident that the SIEM does not have.

        It would be tried for ever, or nobody would know that it was never written.
        """
        async with self.harness() as lab:
            self._writes()
            expect_failure(await catch_failure(self._write(lab, lab.case())), Refused)

    @rule
    async def test_a_comment_reaches_any_id(self) -> None:
        """`comment` writes to an incident whose id has a slash, a space, `?`, `#` or `%` in it.

        An id that is put into a path as it is leads to another incident.
        """
        async with self.harness() as lab:
            self._writes()
            for odd in ODD_IDS:
                case = lab.put(id=odd)
                await lab.arrive()
                if self.external_id(case) not in lab.store.incidents:
                    does_not_apply(f"its ids are never such as {odd!r}")
                await self._write(lab, case)
                _expect_texts(lab, case, _TEXT)

    @rule
    async def test_a_comment_that_was_not_written_is_told(self) -> None:
        """`comment` raises as `read` does where the SIEM fails, and writes once that is over.

        Passed over, the incident stays without it.
        """
        async with self.harness() as lab:
            self._writes()
            for fault, wanted in _FAILURES.items():
                case = lab.put()
                lab.simulator.fail(fault)
                expect_failure(await catch_failure(self._write(lab, case)), wanted)
                lab.simulator.recover()
                await self._write(lab, case)
                _expect_texts(lab, case, _TEXT)

    def _writes(self) -> None:
        if Capability.COMMENT not in self.provider.capabilities():
            does_not_apply(f"it does not offer {Capability.COMMENT}")

    async def _write(
        self, lab: HttpHarness, case: Case, *, text: str = _TEXT, key: str = _KEY
    ) -> None:
        await lab.provider.comment(self.external_id(case), text, key)


def _expect_texts(lab: HttpHarness, case: Case, *texts: str) -> None:
    """Return where these are the comments to an incident, perhaps with marks around them."""
    found = lab.siem.comments(case.id)
    expect(len(found) == len(texts), f"{len(found)} comments, where there were to be {len(texts)}")
    for text, comment in zip(texts, found, strict=True):
        expect(text in comment, f"{comment!r}, where {text!r} was to be")
