"""Servers that refuse, put off, hang up or say nothing, at each step of a conversation."""

from __future__ import annotations

import ssl

import pytest

from tocsin import CredentialsRefused, Misconfigured, Refused, TryLater

from .conftest import EVENT_ID, PASSWORD, delivery

SIGNED_IN = {"username": "tocsin", "password": PASSWORD}


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_a_mail_arrives_over_tls_from_who_signed_in(serve, make_channel, tls):
    server = await serve(tls)
    receipt = await make_channel(server, **SIGNED_IN).deliver(delivery())
    assert server.desk.logins == [(b"tocsin", PASSWORD.encode())]
    assert [mail.recipients for mail in server.desk.mails] == [["soc@example.com"]]
    assert (receipt.status, receipt.response) == (
        250,
        b"soc@example.com: 250 2.0.0 queued as 1",
    )


async def test_a_server_inside_takes_mail_without_tls(serve, make_channel):
    server = await serve("none")
    await make_channel(server).deliver(delivery())
    assert len(server.desk.mails) == 1


STEPS = ["connect", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "dot"]


@pytest.mark.parametrize("step", STEPS)
async def test_a_connection_that_is_lost_passes_and_nothing_is_lost(server, make_channel, step):
    channel = make_channel(server, **SIGNED_IN)
    server.desk.hangs_up = {step}
    with pytest.raises(TryLater, match="the connection was lost") as caught:
        await channel.deliver(delivery())
    assert not caught.value.partly
    assert caught.value.response == b""
    server.desk.hangs_up = set()
    await channel.deliver(delivery(attempt=2))
    assert {str(mail.message["Message-ID"]) for mail in server.desk.mails} == {
        f"<{EVENT_ID}@example.com>"
    }
    # only after the final dot can nobody know
    assert len(server.desk.mails) == (2 if step == "dot" else 1)
    assert ("may have arrived" in str(caught.value)) == (step in ("DATA", "dot"))


@pytest.mark.parametrize("step", ["EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA"])
async def test_a_server_that_says_nothing_is_given_up(server, make_channel, step):
    server.desk.is_silent = {step}
    channel = make_channel(server, timeout="150ms", **SIGNED_IN)
    with pytest.raises(TryLater, match="timeout") as caught:
        await channel.deliver(delivery())
    assert step.removesuffix("FROM") in str(caught.value)


@pytest.mark.parametrize("step", ["greeting", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA"])
async def test_what_is_put_off_is_tried_again(server, make_channel, step):
    server.desk.answers[step] = ["451 4.3.0 try again"]
    with pytest.raises(TryLater, match=r"451 .* try again") as caught:
        await make_channel(server, **SIGNED_IN).deliver(delivery())
    assert (caught.value.status, caught.value.throttled) == (451, False)
    assert server.desk.mails == []


@pytest.mark.parametrize("step", ["greeting", "EHLO", "MAIL", "RCPT", "DATA", "dot"])
async def test_a_server_that_has_too_much_to_do_is_left_alone(server, make_channel, step):
    server.desk.answers[step] = ["421 4.3.2 too many connections"]
    with pytest.raises(TryLater) as caught:
        await make_channel(server).deliver(delivery())
    assert caught.value.throttled


@pytest.mark.parametrize("step", ["greeting", "EHLO", "STARTTLS"])
async def test_a_server_that_wants_nobody_is_tried_again(server, make_channel, step):
    # it has not heard of any mail yet: what waits shall not die of it
    server.desk.answers[step] = ["554 5.3.2 not now"]
    with pytest.raises(TryLater, match=r"554 .* not now"):
        await make_channel(server).deliver(delivery())


async def test_credentials_that_are_refused_wait_for_the_operator(server, make_channel):
    channel = make_channel(server, username="tocsin", password="wrong secret")
    with pytest.raises(CredentialsRefused, match="AUTH: 535") as caught:
        await channel.deliver(delivery())
    assert "wrong secret" not in str(caught.value)
    assert len(server.desk.logins) == 1  # several would lock an account sooner


async def test_a_server_without_authentication_is_told_of(serve, make_channel):
    server = await serve("implicit", auth_exclude_mechanism=["PLAIN", "LOGIN"])
    with pytest.raises(Misconfigured, match="does not support any available authentication"):
        await make_channel(server, **SIGNED_IN).deliver(delivery())


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ("550 5.7.1 you are not to write as that", Misconfigured, "sender tocsin@example.com"),
        ("530 5.7.0 sign in first", Misconfigured, "set username and password"),
        ("552 5.3.4 too large", Refused, "too large"),
    ],
)
async def test_a_sender_who_is_refused_waits_and_a_mail_that_is_too_large_does_not(
    server, make_channel, answer, kind, words
):
    server.desk.answers["MAIL"] = [answer]
    with pytest.raises(Refused, match=words) as caught:
        await make_channel(server).deliver(delivery())
    assert type(caught.value) is kind
    assert caught.value.status == int(answer[:3])


@pytest.mark.parametrize(
    "answer",
    [
        "553 5.7.1 <tocsin@example.com>: Sender address rejected: not owned by user soc",
        "550 5.1.8 <tocsin@example.com>: Domain not found",
        "550 5.7.1 mail from <tocsin@example.com> is not allowed here",
    ],
)
async def test_a_sender_who_is_refused_at_the_recipients_is_named(server, make_channel, answer):
    server.desk.answers["RCPT"] = [answer]
    with pytest.raises(Misconfigured, match=r"^sender tocsin@example.com: 55") as caught:
        await make_channel(server).deliver(delivery())
    assert caught.value.status == int(answer[:3])
    del server.desk.answers["RCPT"]
    assert (await make_channel(server).deliver(delivery())).status == 250


@pytest.mark.parametrize("step", ["DATA", "dot"])
async def test_content_that_is_refused_is_not_sent_again(server, make_channel, step):
    server.desk.answers[step] = ["554 5.7.1 this looks like spam"]
    with pytest.raises(Refused, match="looks like spam") as caught:
        await make_channel(server).deliver(delivery())
    assert type(caught.value) is Refused


async def test_content_that_is_put_off_is_sent_again(server, make_channel):
    server.desk.answers["dot"] = ["452 4.3.1 no space"]
    with pytest.raises(TryLater, match="no space") as caught:
        await make_channel(server).deliver(delivery())
    assert not caught.value.partly


@pytest.mark.parametrize(
    "answer", ["banana", "999 what", "-12 x", "250-endless\r\n" * 5_000, "\xff"]
)
async def test_what_is_no_answer_passes(server, make_channel, answer):
    server.desk.answers["MAIL"] = [answer]
    with pytest.raises(TryLater):
        await make_channel(server, timeout="500ms").deliver(delivery())


@pytest.mark.parametrize("hangs_up", [True, False])
async def test_a_goodbye_that_fails_spoils_nothing(server, make_channel, hangs_up):
    (server.desk.hangs_up if hangs_up else server.desk.answers).update(
        {"QUIT"} if hangs_up else {"QUIT": ["500 what?"]}
    )
    assert (await make_channel(server).deliver(delivery())).status == 250


async def test_a_server_without_starttls_gets_no_mail_and_no_password(serve, make_channel):
    server = await serve("none")
    server.settings["tls"] = "starttls"
    with pytest.raises(TryLater, match="STARTTLS"):
        await make_channel(server, **SIGNED_IN).deliver(delivery())
    assert server.desk.steps == ["EHLO", "QUIT"]
    assert server.desk.logins == []


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_a_server_whose_certificate_is_not_its_own_gets_nothing(
    serve, make_channel, authority, tls
):
    server = await serve(tls, context=authority.server("mail.example.com"))
    with pytest.raises(TryLater, match="TLS certificate not valid"):
        await make_channel(server, **SIGNED_IN).deliver(delivery())
    assert server.desk.logins == []


async def test_a_certificate_is_shown_to_a_server_that_wants_one(serve, make_channel, authority):
    context = authority.server("127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    server = await serve("implicit", context=context)
    await make_channel(server, client_certificate=authority.issue("tocsin")).deliver(delivery())
    with pytest.raises(TryLater):
        await make_channel(server).deliver(delivery())
    assert len(server.desk.mails) == 1


@pytest.mark.parametrize(
    ("public_url", "name"),
    [
        ("https://tocsin.example.com:8443", "tocsin.example.com"),
        ("http://127.0.0.1:8080", "[127.0.0.1]"),
        ("", "[127.0.0.1]"),
    ],
)
async def test_it_calls_itself_by_its_own_name(server, make_channel, public_url, name):
    await make_channel(server, public_url=public_url).deliver(delivery())
    assert server.desk.hello == name
