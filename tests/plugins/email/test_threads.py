"""One thread for each subject, whatever order, retries and restarts there are."""

from __future__ import annotations

import pytest

from tocsin_plugins.email.threads import MailThread, build_message_id, build_shared_message_id

from .conftest import delivery

INCIDENT = {"incident": {"external_id": "b3a1", "provider": "cloud"}}
FIRST = "<evt_00000000000000000000000002@example.com>"


async def sent(server, channel, brought):
    receipt = await channel.deliver(brought)
    return receipt, server.desk.mails[-1].message


async def test_what_follows_answers_the_first_mail_of_its_subject(server, make_channel):
    channel = make_channel(server)
    receipt, first = await sent(server, channel, delivery(2))
    assert (first["In-Reply-To"], str(first["References"])) == (None, "<incident.7@example.com>")
    again, second = await sent(
        server,
        channel,
        delivery(3, remote_id=receipt.remote_id, parts={"subject": "Something else altogether"}),
    )
    assert str(second["In-Reply-To"]) == str(first["Message-ID"]) == FIRST
    assert str(second["References"]).split() == ["<incident.7@example.com>", FIRST]
    assert str(second["Subject"]) == f"Re: {first['Subject']}"
    assert again.remote_id == receipt.remote_id  # the thread, for whatever comes next


async def test_what_an_investigation_is_about_has_its_thread(server, make_channel):
    channel = make_channel(server)
    receipt, first = await sent(server, channel, delivery(2))
    completed = delivery(
        3,
        subject="session:abc",
        about=("schedule:night", "incident:6", "incident:7"),
        related={"schedule:night": "<other@example.com> x", "incident:7": receipt.remote_id},
    )
    again, second = await sent(server, channel, completed)
    assert str(second["In-Reply-To"]) == FIRST
    # the root that readers thread by, as in every mail of the incident
    assert str(second["References"]).split() == [str(first["References"]), FIRST]
    assert str(second["Subject"]) == f"Re: {first['Subject']}"
    assert again.remote_id == receipt.remote_id


async def test_a_thread_of_which_only_the_first_mail_is_known_is_continued(server, make_channel):
    brought = delivery(3, remote_id=f"{FIRST} Odd sign-in")
    again, mail = await sent(server, make_channel(server), brought)
    assert str(mail["References"]).split() == ["<incident.7@example.com>", FIRST]
    assert again.remote_id == f"{FIRST} Odd sign-in"


async def test_what_has_a_thread_of_its_own_stays_in_it(server, make_channel):
    brought = delivery(
        3,
        remote_id="<own@example.com> Own",
        about=("incident:7",),
        related={"incident:7": "<o@e> O"},
    )
    _, mail = await sent(server, make_channel(server), brought)
    assert str(mail["In-Reply-To"]) == "<own@example.com>"


async def test_incidents_of_the_same_number_have_threads_of_their_own(server, make_channel):
    channel = make_channel(server)
    _, one = await sent(server, channel, delivery(2, context=INCIDENT))
    other = {"incident": {**INCIDENT["incident"], "external_id": "c4"}}
    _, two = await sent(server, channel, delivery(3, context=other))
    assert str(one["References"]) != str(two["References"])
    assert str(one["References"]).startswith("<incident.")


async def test_a_retry_is_the_same_mail_whatever_was_learnt_meanwhile(server, make_channel):
    channel = make_channel(server)
    _, first = await sent(server, channel, delivery(2))
    _, second = await sent(server, channel, delivery(2, attempt=2, remote_id="<x@example.com> X"))
    assert str(first["Message-ID"]) == str(second["Message-ID"]) == FIRST


@pytest.mark.parametrize(
    "remote", [None, "", "4711", "<a@b>", "a@b subject", "<a b@c> x", "<a@b>\nx"]
)
def test_what_another_channel_left_is_no_thread(remote):
    assert MailThread.of(remote) is None


async def test_a_subject_that_was_kept_cannot_make_a_header(server, make_channel):
    brought = delivery(2, remote_id="<a@example.com> x\x85Bcc: thief@example.net\u2028y")
    _, mail = await sent(server, make_channel(server), brought)
    assert mail["Bcc"] is None
    assert str(mail["Subject"]) == "Re: x Bcc: thief@example.net y"


@pytest.mark.parametrize(
    "name", ["evt_1", "incident:7f", "schedule:1/../2", "ü", "a b", "", "x" * 500]
)
def test_an_identifier_is_one_whatever_it_is_made_of(name):
    made = build_message_id(name, "example.com")
    assert MailThread.of(f"{made} x").first == made == build_message_id(name, "example.com")
    assert len(made) < 120


def test_a_digest_of_the_same_events_is_the_same_mail():
    assert build_shared_message_id(["a", "b"], "e") == build_shared_message_id(["b", "a"], "e")
    assert build_shared_message_id(["a", "b"], "e") != build_shared_message_id(["a", "c"], "e")
