"""Buttons of incident messages, and Slack's requests for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from slack_sdk.signature import Clock, SignatureVerifier

from slack_requests import (
    ANA,
    REPLY_URL,
    SIGNING_SECRET,
    encode_form,
    make_action,
    make_payload,
    sign,
)
from tocsin import CredentialsRefused, MessageAction, MessageButton, PushRequest
from tocsin_plugins.slack.buttons import ButtonValues
from tocsin_plugins.slack.interactions import parse_interaction

from .blocks import judge
from .deliveries import completed, delivery
from .simulator import CHANNEL, TOKEN
from .test_settings import BOT, settings, wrong

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
PUBLIC_URL = "https://tocsin.example"
BUTTONS = {
    "buttons": [*MessageButton],
    "signing_secret": SIGNING_SECRET,
    "people": {ANA: "ana"},
}
VALUES = ButtonValues(PUBLIC_URL, SIGNING_SECRET)
ACKNOWLEDGE = VALUES.make(MessageButton.ACKNOWLEDGE, 4711)
buttons = st.sampled_from(MessageButton)
numbers = st.integers(0, 10**18 - 1)


def alert(number=4711, **members):
    made = delivery(**members)
    event = replace(made.event, data={"incident_number": number, "title": "Odd sign-in"})
    return replace(made, event=event)


def parse(payload, at=NOW, now=NOW, secret=SIGNING_SECRET, url=PUBLIC_URL, **changed):
    body = payload if isinstance(payload, bytes) else encode_form(payload)
    request = PushRequest(headers=CIMultiDict(sign(body, at, secret)), body=body)
    return parse_interaction(settings(**BOT | BUTTONS | changed), request, now, url)


# messages


async def test_the_message_of_an_incident_has_buttons_that_slack_accepts(make, slack):
    await make(**BUTTONS).deliver(alert())
    [message] = slack.channel.messages
    assert judge(message["blocks"]) is None
    [block] = [block for block in message["blocks"] if block["type"] == "actions"]
    shown = [element["text"]["text"] for element in block["elements"] if "text" in element]
    assert shown == ["Acknowledge", "Assign to me"]
    options = block["elements"][-1]["options"]
    assert len(options) == 5
    assert all(len(option["value"]) <= 75 for option in options)


async def test_the_last_line_stays_the_last(make, slack):
    blocks = [{"type": "divider"}, {"type": "divider"}]
    await make(**BUTTONS).deliver(alert(content={"text": "An alert", "blocks": blocks}))
    assert [block["type"] for block in slack.channel.messages[0]["blocks"]] == [
        *("divider", "actions", "divider")
    ]


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        (completed(), BUTTONS),
        (alert(), {}),
        (alert(number=None), BUTTONS),
        (alert(content={"text": "x", "blocks": [{"type": "divider"}] * 50}), BUTTONS),
        (alert(content={"text": "x"}), BUTTONS),
    ],
)
async def test_other_messages_have_no_buttons(make, slack, sent, given):
    await make(**given).deliver(sent)
    blocks = slack.channel.messages[0].get("blocks") or ()
    assert "actions" not in [block["type"] for block in blocks]


async def test_messages_of_incoming_webhooks_have_buttons(make, slack):
    await make(webhook_url=slack.webhook_url, **BUTTONS).deliver(alert())
    assert "actions" in [block["type"] for block in slack.webhook_bodies[0]["blocks"]]


# values


@given(button=buttons, number=numbers)
def test_a_value_names_its_button_and_incident(button, number):
    assert VALUES.read(VALUES.make(button, number)) == (button, number)
    assert len(VALUES.make(button, number)) <= 75


@given(button=buttons, number=numbers, other=numbers, wanted=buttons)
def test_a_value_is_valid_for_one_button_and_incident(button, number, other, wanted):
    signature = VALUES.make(button, number).rpartition(":")[2]
    if (button, number) != (wanted, other):
        assert VALUES.read(f"{wanted}:{other}:{signature}") is None


@given(st.text() | st.none() | st.integers())
def test_no_other_value_is_a_button(value):
    assert VALUES.read(value) is None


def test_another_tocsin_or_app_makes_no_valid_buttons():
    for values in (
        ButtonValues("https://other.example", SIGNING_SECRET),
        ButtonValues(PUBLIC_URL, "x" * 32),
    ):
        assert VALUES.read(values.make(MessageButton.ASSIGN, 1)) is None


# requests


def test_a_pressed_button_is_that_of_a_person():
    found = parse(make_payload(make_action(ACKNOWLEDGE)))
    assert isinstance(found, MessageAction)
    assert (found.user_id, found.person) == (ANA, "ana")
    assert (found.button, found.incident_number) == (MessageButton.ACKNOWLEDGE, 4711)
    assert found.reply_to == REPLY_URL


def test_an_option_of_the_menu_is_a_button():
    value = VALUES.make(MessageButton.FALSE_POSITIVE, 7)
    found = parse(make_payload(make_action(value, is_menu=True)))
    assert (found.button, found.incident_number) == (MessageButton.FALSE_POSITIVE, 7)


@pytest.mark.parametrize("user", ["U0123456780", "W0123456789", ANA.lower()])
def test_people_who_are_not_listed_have_no_name(user):
    found = parse(make_payload(make_action(ACKNOWLEDGE), user=user))
    assert found is None or found.person is None


@pytest.mark.parametrize(
    ("value", "changed"),
    [
        (ACKNOWLEDGE, {"buttons": ["assign"]}),
        (ACKNOWLEDGE.replace("4711", "4712"), {}),
        (ACKNOWLEDGE, {"url": "https://other.example"}),
        (None, {}),
    ],
)
def test_buttons_that_are_forged_or_disabled_are_none(value, changed):
    assert parse(make_payload(make_action(value)), **changed).button is None


@pytest.mark.parametrize(
    "payload",
    [
        make_payload(make_action(ACKNOWLEDGE)) | {"type": "view_submission"},
        make_payload(make_action(ACKNOWLEDGE) | {"action_id": "of another program"}),
        make_payload(),
        make_payload(make_action(ACKNOWLEDGE), make_action(ACKNOWLEDGE)),
        make_payload(make_action(ACKNOWLEDGE), user="not an ID"),
        *([], None, "text", b"payload=%7B", b"payload=1&payload=2", b"\xff", b"", b"ssl_check=1"),
        *(b"payload=" + b"%5B" * 10_000, b"&".join([b"payload=1"] * 21)),
    ],
)
def test_other_interactions_are_ignored(payload):
    assert parse(payload) is None


def test_the_signature_is_that_of_slacks_documentation_and_library():
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&"
        b"channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&"
        b"command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
        b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&"
        b"trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {
        "X-Slack-Request-Timestamp": "1531420618",
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }
    at = datetime.fromtimestamp(1531420618, UTC)
    request = PushRequest(headers=CIMultiDict(headers), body=body)
    assert parse_interaction(settings(**BOT | BUTTONS), request, at, PUBLIC_URL) is None
    verifier = SignatureVerifier(SIGNING_SECRET, _At(NOW))
    assert verifier.is_valid_request(body, sign(body, NOW))


class _At(Clock):
    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> float:
        return self._now.timestamp()


@pytest.mark.parametrize("minutes", [-6, 6])
def test_an_old_request_is_refused(minutes):
    with pytest.raises(CredentialsRefused, match="not recent"):
        parse(make_payload(make_action(ACKNOWLEDGE)), now=NOW + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    "changed",
    [
        {"X-Slack-Signature": ""},
        {"X-Slack-Signature": "v0=\udcff"},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Request-Timestamp": "1764331201"},
        {"X-Slack-Request-Timestamp": "٣"},
    ],
)
def test_a_wrong_signature_is_refused(changed):
    body = encode_form(make_payload(make_action(ACKNOWLEDGE)))
    headers = CIMultiDict(sign(body, NOW) | changed)
    for sent in (
        PushRequest(headers=headers, body=body),
        PushRequest(headers=CIMultiDict(sign(body, NOW)), body=body + b"&a=b"),
        PushRequest(headers=CIMultiDict(sign(body, NOW, "x" * 32)), body=body),
    ):
        with pytest.raises(CredentialsRefused):
            parse_interaction(settings(**BOT | BUTTONS), sent, NOW, PUBLIC_URL)


def test_without_buttons_no_request_is_authentic():
    body = encode_form(make_payload(make_action(ACKNOWLEDGE)))
    request = PushRequest(headers=CIMultiDict(sign(body, NOW)), body=body)
    with pytest.raises(CredentialsRefused):
        parse_interaction(settings(**BOT), request, NOW, PUBLIC_URL)


# replies


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.slack.com/actions/T/1/x", "https://hooks.slack.com.example.com/actions"),
        *("https://127.0.0.1/", "https://a@hooks.slack.com/", "https://[::1", "", 7, None),
    ],
)
def test_replies_go_to_slack_alone(url):
    found = parse(make_payload(make_action(ACKNOWLEDGE), response_url=url))
    assert found.reply_to is None


async def test_a_reply_is_shown_to_one_person_as_text(make, slack):
    action = parse(
        make_payload(make_action(ACKNOWLEDGE), response_url=slack.webhook_url),
        api_url=slack.url,
        allow_networks=["127.0.0.0/8"],
    )
    channel = make(**BUTTONS)
    await channel.reply(action, "Done by <!here> & co")
    assert slack.webhook_bodies == [
        {
            "response_type": "ephemeral",
            "replace_original": False,
            "text": "Done by &lt;!here&gt; &amp; co",
        }
    ]


# settings


@pytest.mark.parametrize("missing", ["buttons", "signing_secret", "people"])
def test_buttons_need_a_secret_and_people(missing):
    given = {name: value for name, value in BUTTONS.items() if name != missing}
    assert "set buttons, signing_secret and people together" in wrong(**BOT, **given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"buttons": ["close"]}, "buttons.0"),
        ({"buttons": ["assign", "assign"]}, "list each button only once"),
        ({"people": {"ana": "ana"}}, "'ana' is not a Slack user ID"),
        ({"people": {ANA: ""}}, "people"),
        ({"signing_secret": "short"}, "signing_secret"),
    ],
)
def test_wrong_settings_are_named(given, reason):
    assert reason in wrong(**BOT | BUTTONS | given)


def test_the_secret_is_a_secret():
    found = settings(**BOT | BUTTONS)
    assert SIGNING_SECRET not in repr(found)
    assert (found.channel, found.bot_token.get_secret_value()) == (CHANNEL, TOKEN)
