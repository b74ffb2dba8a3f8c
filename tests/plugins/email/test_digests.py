"""Several events in one mail, each with a receipt of its own."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tocsin import Misconfigured, Receipt, Refused, TryLater
from tocsin_plugins.email.composer import MAX_DIGEST_SIZE, DigestEntry, split_into_mails

from .conftest import delivery


def event(number: int, **members):
    parts = {
        "subject": f"[High] Event {number} <b>",
        "text": f"Text of {number}",
        "html": "<!doctype html><head></head><body><table><!-- event -->"
        f"<p>HTML of {number}</p><!-- /event --></table></body>",
        **members.pop("parts", {}),
    }
    return delivery(number, subject=f"incident:{number}", parts=parts, **members)


async def together(channel, *deliveries):
    """Return what became of each, as when a worker hands them over side by side."""
    return await asyncio.gather(*map(channel.deliver, deliveries), return_exceptions=True)


@pytest.fixture
def channel(server, make_channel):
    return make_channel(server, digest="1h")


async def test_what_comes_together_is_told_in_one_mail(server, channel):
    receipts = await together(channel, event(3), event(2), event(4))
    [mail] = server.desk.mails
    assert {receipt.remote_id for receipt in receipts} == {
        f"{mail.message['Message-ID']} 3 events: [High] Event 2 <b>, and 2 more"
    }
    assert mail.message["Subject"] == "3 events: [High] Event 2 <b>, and 2 more"
    text, html = (part.get_content() for part in mail.message.iter_parts())
    assert text.index("1. [High] Event 2") < text.index("Text of 2") < text.index("Text of 4")
    assert html.count("<!doctype html>") == html.count("</body>") == 1
    for number in (2, 3, 4):
        assert f"<li>[High] Event {number} &lt;b&gt;</li>" in html
        assert f"<p>HTML of {number}</p>" in html


async def test_a_digest_of_one_event_is_its_mail(server, channel):
    await together(channel, event(2))
    [mail] = server.desk.mails
    assert mail.message["Subject"] == "[High] Event 2 <b>"
    assert mail.message["X-Tocsin-Event"] == "incident-alert"


async def test_a_digest_that_fails_fails_for_each(server, channel):
    server.desk.answers["dot"] = ["451 4.3.0 later", "250 ok"]
    first = await together(channel, event(2), event(3))
    assert [type(result) for result in first] == [TryLater, TryLater]
    assert first[0] is not first[1]
    again = await together(channel, event(2, attempt=2), event(3, attempt=2))
    assert all(isinstance(result, Receipt) for result in again)
    assert len(server.desk.mails) == 1


async def test_a_digest_is_repeated_for_those_alone_who_have_not_got_it(server, make_channel):
    channel = make_channel(server, digest="1h", to=["a@example.com", "b@example.com"])
    server.desk.answers["RCPT b@example.com"] = ["451 4.7.1 greylisted"]
    for failure, name in zip(
        await together(channel, event(2), event(3)), ("dlv_2", "dlv_3"), strict=True
    ):
        channel.tools.attempts.answers[name] = failure.response
    del server.desk.answers["RCPT b@example.com"]
    receipts = await together(channel, event(2, attempt=2), event(3, attempt=2), event(4), event(5))
    assert all(isinstance(receipt, Receipt) for receipt in receipts)
    told = [(mail.recipients, str(mail.message["Subject"])[:27]) for mail in server.desk.mails]
    assert told == [
        (["a@example.com"], "2 events: [High] Event 2 <b"),
        (["b@example.com"], "2 events: [High] Event 2 <b"),
        (["a@example.com", "b@example.com"], "2 events: [High] Event 4 <b"),
    ]


async def test_an_event_whose_template_fails_keeps_no_other_back(server, channel):
    def render(_part):
        raise Misconfigured("no")

    failure, receipt, _ = await together(channel, event(2, render=render), event(3), event(4))
    assert isinstance(failure, Misconfigured)
    assert isinstance(receipt, Receipt)
    assert "Event 3" in server.desk.mails[0].message["Subject"]


async def test_a_mail_that_is_refused_keeps_no_other_back(server, channel):
    html = {"html": f"<!-- event -->{'x' * 60_000}<!-- /event -->"}
    server.desk.answers["dot"] = ["554 5.7.1 this looks like spam", "250 ok"]
    failure, receipt = await together(channel, event(2, parts=html), event(3, parts=html))
    assert type(failure) is Refused
    assert isinstance(receipt, Receipt)
    assert ["Event 3" in mail.message["Subject"] for mail in server.desk.mails] == [True]


async def test_a_template_that_shows_no_event_is_told_of(server, channel):
    html = {"html": "<p>no marks</p>"}
    failures = await together(channel, event(2, parts=html), event(3, parts=html))
    assert {str(failure) for failure in failures} == {
        "for a digest, the HTML template must contain <!-- event --> and <!-- /event -->"
    }
    assert server.desk.connections == 0


async def test_a_bug_is_told_to_each(channel):
    def render(_part):
        raise ZeroDivisionError

    failures = await together(channel, event(2, render=render), event(3))
    assert [type(failure) for failure in failures] == [ZeroDivisionError, ZeroDivisionError]


async def test_who_does_not_wait_any_more_keeps_no_other_back(server, channel):
    waiting = [asyncio.create_task(channel.deliver(event(number))) for number in (2, 3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    assert isinstance(await waiting[1], Receipt)
    assert waiting[0].cancelled()


async def test_where_nobody_waits_any_more_nothing_goes_on(server, channel):
    server.desk.is_silent = {"MAIL"}
    waiting = [asyncio.create_task(channel.deliver(event(number))) for number in (2, 3)]
    await server.desk.is_waiting.wait()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await server.desk.has_ended.wait()


def test_a_mail_holds_what_readers_show_of_it():
    entries = [(number, DigestEntry("s", "t" * 10_000, "h" * 20_000)) for number in range(7)]
    parts = [[number for number, _ in chunk] for chunk in split_into_mails(entries)]
    assert parts == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(split_into_mails([(0, DigestEntry("s", "t", "h" * MAX_DIGEST_SIZE))])) != []
    assert list(split_into_mails([])) == []


def test_a_digest_holds_more_at_once_than_single_mails_are_under_way(server, make_channel):
    assert make_channel(server).gathering is None
    channel = make_channel(server, digest="1d")
    assert (channel.gathering, channel.settings.concurrency) == (timedelta(days=1), 64)
    assert make_channel(server, digest="1d", concurrency=5).settings.concurrency == 5
