"""Several recipients, each with an outcome: nobody gets a mail twice, and nobody's is lost."""

from __future__ import annotations

import pytest

from tocsin import Misconfigured, TryLater
from tocsin_plugins.email.outcomes import (
    MAX_RESPONSE_SIZE,
    RecipientOutcome,
    format_outcomes,
    parse_accepted,
)

from .conftest import PARTS, delivery

THREE = ["a@example.com", "b@example.com", "c@example.com"]
GONE = "550 5.1.1 no such user"
GREYLISTED = "451 4.7.1 greylisted"


def recipients(server) -> list[list[str]]:
    return [mail.recipients for mail in server.desk.mails]


async def attempt(channel, number: int = 1):
    """Return the receipt or the failure, which the log then holds as it would in the service."""
    brought = delivery(attempt=number)
    try:
        return await channel.deliver(brought)
    except (TryLater, Misconfigured) as failure:
        if failure.response:
            channel.tools.attempts.answers[brought.id] = failure.response
        return failure


async def test_who_is_refused_for_good_keeps_the_mail_from_nobody(server, make_channel):
    server.desk.answers["RCPT b@example.com"] = [GONE]
    receipt = await make_channel(server, to=THREE).deliver(delivery())
    assert recipients(server) == [["a@example.com", "c@example.com"]]
    assert receipt.response.decode().splitlines() == [
        "a@example.com: 250 2.0.0 queued as 1",
        f"b@example.com: {GONE}",
        "c@example.com: 250 2.0.0 queued as 1",
    ]


async def test_who_is_put_off_gets_it_later_and_the_others_once(server, make_channel):
    channel = make_channel(server, to=THREE)
    server.desk.answers["RCPT b@example.com"] = [GREYLISTED]
    for number in (1, 2):
        failure = await attempt(channel, number)
        assert str(failure) == (
            f"deferred: b@example.com: {GREYLISTED}; 2 of 3 recipients already have the email"
        )
        assert (failure.partly, failure.status) == (True, 451)
        assert recipients(server) == [["a@example.com", "c@example.com"]]
    del server.desk.answers["RCPT b@example.com"]
    receipt = await attempt(channel, 3)
    assert recipients(server) == [["a@example.com", "c@example.com"], ["b@example.com"]]
    assert all(f"{address}: 250" in receipt.response.decode() for address in THREE)


async def test_what_is_known_of_recipients_outlives_attempts_that_came_to_nothing(
    server, make_channel
):
    channel = make_channel(server, to=THREE)
    server.desk.answers["RCPT b@example.com"] = [GREYLISTED]
    await attempt(channel)
    server.desk.hangs_up = {"EHLO"}
    failure = await attempt(channel, 2)
    assert not failure.partly  # this time nobody got anything
    server.desk.hangs_up = set()
    del server.desk.answers["RCPT b@example.com"]
    await attempt(channel, 3)
    assert recipients(server)[1:] == [["b@example.com"]]


async def test_what_is_tried_again_after_a_replay_is_everything(server, make_channel):
    channel = make_channel(server, to=THREE)
    await channel.deliver(delivery())
    await channel.deliver(delivery(attempt=2))  # what arrived has no last answer
    assert recipients(server) == [THREE, THREE]


async def test_a_server_that_takes_few_recipients_at_once_is_told_of_the_others_at_once(
    server, make_channel
):
    server.desk.answers |= {
        "RCPT b@example.com": ["452 4.5.3 too many recipients", "250 ok"],
        "RCPT c@example.com": ["452 4.5.3 too many recipients"] * 2 + ["250 ok"],
    }
    receipt = await make_channel(server, to=THREE).deliver(delivery())
    assert recipients(server) == [[address] for address in THREE]
    assert receipt.status == 250


async def test_a_connection_that_is_lost_in_between_repeats_nothing(server, make_channel):
    channel = make_channel(server, to=THREE)
    server.desk.answers["RCPT b@example.com"] = ["452 4.5.3 too many recipients", "421 closing"]
    failure = await attempt(channel)
    assert failure.partly
    del server.desk.answers["RCPT b@example.com"]
    await attempt(channel, 2)
    assert recipients(server) == [["a@example.com", "c@example.com"], ["b@example.com"]]


async def test_all_who_are_refused_wait_until_they_are_others(server, make_channel):
    server.desk.answers["RCPT"] = [GONE]
    with pytest.raises(Misconfigured, match=r"a@example.com: 550 .*; b@example.com: 550") as caught:
        await make_channel(server, to=THREE[:2]).deliver(delivery())
    assert caught.value.status == 550
    assert recipients(server) == []


async def test_all_who_are_put_off_are_tried_again_together(server, make_channel):
    server.desk.answers["RCPT"] = [GREYLISTED]
    with pytest.raises(TryLater, match="greylisted") as caught:
        await make_channel(server, to=THREE).deliver(delivery())
    assert not caught.value.partly
    assert server.desk.steps.count("MAIL") == 1


async def test_nobody_is_left_once_who_was_put_off_is_taken_out(server, make_channel):
    channel = make_channel(server, to=["a@example.com"])
    told = format_outcomes(
        {"a@example.com": RecipientOutcome(250, "ok"), "b@example.com": RecipientOutcome(451, "no")}
    )
    channel.tools.attempts.answers["dlv_1"] = told
    receipt = await channel.deliver(delivery(attempt=2))
    assert receipt.response == b"a@example.com: 250 ok"
    assert server.desk.connections == 0


async def test_who_is_written_to_twice_gets_it_once(server, make_channel):
    await make_channel(server, to=["a@example.com", "A <a@example.com>"], cc=THREE[:2]).deliver(
        delivery()
    )
    assert recipients(server) == [["a@example.com", "b@example.com"]]


# --- addresses beyond ASCII


async def test_a_domain_beyond_ascii_needs_nothing_of_the_server(server, make_channel):
    await make_channel(server, to=["soc@bücher.example"]).deliver(delivery())
    [mail] = server.desk.mails
    assert mail.recipients == ["soc@xn--bcher-kva.example"]
    assert "SMTPUTF8" not in mail.options


async def test_an_address_beyond_ascii_gets_a_mail_of_its_own(server, make_channel):
    receipt = await make_channel(server, to=["соц@example.com", "a@example.com"]).deliver(
        delivery()
    )
    plain, international = server.desk.mails
    assert (plain.recipients, "SMTPUTF8" in plain.options) == (["a@example.com"], False)
    assert str(plain.message["To"]) == "a@example.com"
    assert plain.content.isascii()
    assert international.recipients == ["соц@example.com"]
    assert "SMTPUTF8" in international.options
    assert "соц@example.com" in international.content.decode()
    assert plain.message["Message-ID"] == international.message["Message-ID"]
    assert receipt.response.decode().count(": 250") == 2


async def test_a_server_that_does_not_know_them_keeps_the_mail_from_no_other(serve, make_channel):
    server = await serve(enable_SMTPUTF8=False)
    receipt = await make_channel(server, to=["соц@example.com", "a@example.com"]).deliver(
        delivery()
    )
    assert recipients(server) == [["a@example.com"]]
    assert "соц@example.com: 553 5.6.7" in receipt.response.decode()


# --- what is kept


def test_what_is_kept_of_fifty_recipients_fits_and_can_be_read_again():
    longest = {
        f"{number:02}{'ж' * 20}@{'x' * 200}.example": RecipientOutcome(250, "ж" * 300)
        for number in range(50)
    }
    kept = format_outcomes(longest)
    assert len(kept) <= MAX_RESPONSE_SIZE
    assert list(parse_accepted(kept)) == list(longest)


@pytest.mark.parametrize("answer", [b"", b"\xff\n: 250", b"a@b: 25\n", b"250 ok", b"a b@c: 250 x"])
def test_what_nobody_wrote_says_nothing(answer):
    assert parse_accepted(answer) == {}


async def test_no_answer_speaks_for_another_recipient(server, make_channel):
    server.desk.answers["RCPT a@example.com"] = ["451 no\x85b@example.com: 250 ok\u2028"]
    failure = await attempt(make_channel(server, to=THREE[:2]))
    assert list(parse_accepted(failure.response)) == ["b@example.com"]
    assert len(failure.response.decode().splitlines()) == 2
    assert PARTS  # the mail itself is the usual one
