"""Asking a server, without a mail, whether it would take one."""

from __future__ import annotations

import pytest

from tocsin import TryLater

from .conftest import PASSWORD, delivery

THREE = ["a@example.com", "b@example.com", "c@example.com"]


async def test_a_server_that_would_take_it_is_well_and_gets_nothing(server, make_channel):
    channel = make_channel(server, username="tocsin", password=PASSWORD, to=THREE)
    health = await channel.check()
    assert health.problems == ()
    assert (
        "with STARTTLS, signed in as tocsin; the server accepts 3 of 3 recipients" in health.detail
    )
    assert "DATA" not in server.desk.steps
    assert server.desk.mails == []


async def test_everybody_who_is_refused_is_named_at_once(server, make_channel):
    server.desk.answers |= {
        "RCPT a@example.com": ["550 5.1.1 no such user"],
        "RCPT c@example.com": ["554 5.7.1 relaying denied"],
        "RCPT b@example.com": ["451 4.7.1 greylisted"],
    }
    health = await make_channel(server, to=THREE[:2], cc=THREE[2:]).check()
    assert health.problems == (
        "to: a@example.com: 550 5.1.1 no such user",
        "cc: c@example.com: 554 5.7.1 relaying denied",
    )
    assert "deferred: b@example.com: 451 4.7.1 greylisted" in health.detail


async def test_a_sender_who_is_refused_is_named(server, make_channel):
    server.desk.answers["MAIL"] = ["553 5.7.1 not yours"]
    [problem] = (await make_channel(server).check()).problems
    assert problem == "sender: sender tocsin@example.com: 553 5.7.1 not yours"


async def test_credentials_that_are_refused_are_named(server, make_channel):
    [problem] = (await make_channel(server, username="t", password="x").check()).problems
    assert problem.startswith("username: 127.0.0.1: AUTH: 535")


async def test_an_address_that_may_not_be_reached_is_named(server, make_channel):
    [problem] = (await make_channel(server, allow_networks=[]).check()).problems
    assert problem.startswith("host: the address of 127.0.0.1 is not allowed")
    assert server.desk.connections == 0


@pytest.mark.parametrize("step", ["connect", "EHLO", "STARTTLS", "MAIL", "RCPT"])
async def test_a_server_that_is_away_is_no_fault_of_the_settings(server, make_channel, step):
    server.desk.hangs_up = {step}
    with pytest.raises(TryLater, match="the connection was lost"):
        await make_channel(server).check()


async def test_a_server_that_says_nothing_is_given_up(server, make_channel):
    server.desk.is_silent = {"RCPT"}
    with pytest.raises(TryLater, match="RCPT TO: timeout"):
        await make_channel(server, timeout="150ms").check()


async def test_what_was_checked_can_be_sent(server, make_channel):
    channel = make_channel(server, to=["соц@example.com", "a@example.com"])
    assert (await channel.check()).problems == ()
    await channel.deliver(delivery())
    assert len(server.desk.mails) == 2
