"""What arrives: headers, text and HTML, whatever an event holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Misconfigured, Refused
from tocsin_plugins.email.addresses import Mailbox
from tocsin_plugins.email.fields import MailEnvelope
from tocsin_plugins.email.message import LONGEST_SUBJECT, OutgoingMail, clean_lines, to_one_line

from .conftest import EVENT_ID, delivery


async def arrived(server, make_channel, brought, **settings):
    await make_channel(server, **settings).deliver(brought)
    return server.desk.mails[-1].message


async def test_a_mail_says_what_it_is_and_that_nobody_is_to_answer(server, make_channel):
    mail = await arrived(
        server,
        make_channel,
        delivery(),
        sender="Tocsin at Grüne <tocsin@example.com>",
        to=["Desk, 1 <soc@example.com>".replace("Desk, 1", '"Desk, 1"'), "oncall@example.com"],
        cc=["boss@example.com"],
        reply_to="soc@example.com",
    )
    told = {name: str(mail[name]) for name in mail}
    assert told["Subject"] == "[High] Many failed sign-ins"
    assert told["From"] == "Tocsin at Grüne <tocsin@example.com>"
    assert told["To"] == '"Desk, 1" <soc@example.com>, oncall@example.com'
    assert told["Cc"] == "boss@example.com"
    assert told["Reply-To"] == "soc@example.com"
    assert told["Message-ID"] == f"<{EVENT_ID}@example.com>"
    assert told["Auto-Submitted"] == "auto-generated"
    assert told["Precedence"] == "bulk"
    assert told["X-Auto-Response-Suppress"] == "All"
    assert told["List-Id"] == "<soc.tocsin.example.com>"
    assert told["X-Tocsin-Event"] == "incident-alert"
    assert mail["Date"].datetime == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert server.desk.mails[0].recipients == [
        "soc@example.com",
        "oncall@example.com",
        "boss@example.com",
    ]


async def test_a_mail_is_text_and_html_in_seven_bits(server, make_channel):
    text = "Grüße\n.\n..\nFrom here\n" + "x" * 2_000
    mail = await arrived(server, make_channel, delivery(parts={"text": text, "html": "<p>ß</p>"}))
    assert mail.get_content_type() == "multipart/alternative"
    plain, html = mail.iter_parts()
    assert plain.get_content().replace("\r\n", "\n") == text + "\n"
    assert (html.get_content_type(), html.get_content().strip()) == ("text/html", "<p>ß</p>")
    content = server.desk.mails[0].content
    assert content.isascii()
    assert max(map(len, content.split(b"\r\n"))) <= 998  # RFC 5322 section 2.1.1
    assert b"\n" not in content.replace(b"\r\n", b"")


def written(subject="x", text="x", html="x", domain="example.com"):
    letter = OutgoingMail(
        message_id=f"<{EVENT_ID}@{domain}>",
        subject=to_one_line(subject, LONGEST_SUBJECT),
        text=clean_lines(text),
        html=clean_lines(html),
        sent_at=datetime(2026, 11, 21, tzinfo=UTC),
        list_id=f"<soc.tocsin.{domain}>",
        parent=f"<first@{domain}>",
        references=(f"<incident.7@{domain}>", f"<first@{domain}>"),
    )
    to = MailEnvelope(sender=Mailbox.parse("a@example.com"), to=(Mailbox.parse("b@example.com"),))
    return letter.write(to, utf8=False)


NAMES = [
    *("Subject", "Date", "Message-ID", "In-Reply-To", "References"),
    *("Auto-Submitted", "Precedence", "X-Auto-Response-Suppress", "List-Id"),
    *("From", "To", "MIME-Version", "Content-Type"),
]
HOSTILE = [
    "title\r\nBcc: thief@example.net",
    "title\nBcc: thief@example.net\n\nbody",
    "title\rBcc: thief@example.net",
    "title\u2028Bcc: thief@example.net\u2029\x85\x0b\x0c\x1cX: y",
    "=?utf-8?q?Bcc=3A_thief=0D=0ABcc=3A_thief?=",
    "\u202egnp.exe \u2067abc",
    "ü\r\nBcc: thief@example.net " * 30,
    "\x00\x1b[31m\ud800\ufffe",
    "x" * 100_000,
    "ж" * 100_000,
    "مرحبا " * 20_000,
    "",
]


@pytest.mark.parametrize("title", HOSTILE)
def test_no_title_makes_a_header_of_its_own(title):
    head = written(title).partition(b"\r\n\r\n")[0]
    assert re.findall(r"^([\w-]+):", head.decode(), re.MULTILINE) == NAMES
    assert all(len(line) <= 998 for line in head.split(b"\r\n"))
    assert len(head) < 5_000


@given(st.text(), st.text(), st.text())
def test_whatever_is_told_a_mail_comes_of_it(subject, text, html):
    head = written(subject, text, html).partition(b"\r\n\r\n")[0]
    assert re.findall(r"^([\w-]+):", head.decode(), re.MULTILINE) == NAMES


def test_identifiers_stay_whole_however_long_the_domain():
    domain = ".".join(["long-name-of-a-department"] * 9) + ".example.com"
    head = written(domain=domain).partition(b"\r\n\r\n")[0].decode()
    for identifier in (f"<incident.7@{domain}>", f"<first@{domain}>", f"<{EVENT_ID}@{domain}>"):
        assert identifier in head


@given(st.text(), st.integers(1, 300))
def test_a_line_is_one_line_and_no_longer_than_that(text, longest):
    line = to_one_line(text, longest)
    assert len(line) <= longest
    assert len(line.splitlines()) <= 1
    assert not set(line) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\x00\r\n")
    line.encode()


@given(st.text())
def test_lines_hide_nothing_and_move_nothing(text):
    kept = clean_lines(text)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]", kept)
    kept.encode()


async def test_what_is_larger_than_the_server_takes_is_not_handed_over(serve, make_channel):
    server = await serve(data_size_limit=2_000)
    with pytest.raises(Refused, match="the server accepts at most 2,000") as caught:
        await make_channel(server).deliver(delivery(parts={"text": "x" * 5_000}))
    assert not isinstance(caught.value, Misconfigured)
    assert "MAIL" not in server.desk.steps


async def test_a_template_that_fails_is_told_before_anything_is_sent(server, make_channel):
    def render(part):
        raise Misconfigured("email/x.txt.j2, line 3: no")

    with pytest.raises(Misconfigured, match="line 3"):
        await make_channel(server).deliver(delivery(render=render))
    assert server.desk.connections == 0
