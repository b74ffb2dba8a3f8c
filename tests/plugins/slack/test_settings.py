"""Settings of a Slack destination, and errors in them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tocsin import Channel, EventType
from tocsin.testing import make_settings
from tocsin.validation import explain_errors
from tocsin_plugins.slack import Slack, tocsin_channels

from .simulator import CHANNEL, TOKEN

URL = "https://hooks.slack.com/services/T0123/B4567/s3cr3t"
BOT = {"bot_token": TOKEN, "channel": CHANNEL}


def settings(**given):
    return make_settings(Slack, "slack", **given)


def wrong(**given) -> str:
    """Return the error message for wrong settings."""
    with pytest.raises(ValidationError) as caught:
        settings(**given)
    mistakes = explain_errors(caught.value, Slack.Settings)
    return "\n".join(
        f"{'.'.join(mistake.path)}: {mistake.found}; {mistake.expected}" for mistake in mistakes
    )


def test_the_plugin_offers_the_channel():
    assert tocsin_channels() is Slack
    assert Slack.ordered


def test_the_defaults_suit_slack():
    found = settings(**BOT)
    assert found.template == "slack"
    assert found.api_url == "https://slack.com/api"
    assert (found.concurrency, found.rate_limit) == (1, 50)
    assert set(found.broadcast) == {EventType.INVESTIGATION_FAILED, EventType.SCHEDULE_DISABLED}
    assert Slack.Settings.model_fields.keys() > Channel.Settings.model_fields.keys()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bot_token": TOKEN},
        {"channel": CHANNEL},
        {**BOT, "webhook_url": URL},
        {"channel": CHANNEL, "webhook_url": URL},
        {"bot_token": TOKEN, "webhook_url": URL},
    ],
)
def test_it_is_either_a_bot_or_a_webhook(given):
    assert "bot_token and channel, or webhook_url" in wrong(**given)


@pytest.mark.parametrize(
    "token",
    ["xoxp-1-2-abc", "xapp-1-A1-2-abc", "xoxe.xoxb-1-abc", "xoxb-a b", "hunter2", "xoxb-"],
)
def test_a_token_that_is_no_bots_is_refused_and_not_shown(token):
    words = wrong(bot_token=token, channel=CHANNEL)
    assert words.startswith("bot_token: ")
    assert "xoxb-" in words
    assert not token.strip("xob-") or token not in words


@pytest.mark.parametrize("channel", ["#soc", "soc", "c0123456789", "U0123456789", "C1", ""])
def test_a_channel_is_given_by_its_id(channel):
    assert wrong(bot_token=TOKEN, channel=channel).startswith("channel: ")


@pytest.mark.parametrize("channel", ["C0123456789", "G012345678", "D0123456789"])
def test_every_kind_of_channel_has_one(channel):
    assert settings(bot_token=TOKEN, channel=channel).channel == channel


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.slack.com/services/T/B/s3cr3t",
        "ftp://hooks.slack.com/services/T/B/s3cr3t",
        "https://hooks.slack.com/triggers/T/1/s3cr3t",
        "https://hooks.slack.com/workflows/T/1/s3cr3t",
        "https://hooks.slack.com/services/T/B/s3cr3t#top",
        "https://user:s3cr3t@hooks.slack.com/services/T/B/x",
        "https://hooks.slack.com\\@evil.example/services/s3cr3t",
        "https://hooks.slack.com:99999/services/T/B/s3cr3t",
        "https://[::1/services/s3cr3t",
    ],
)
def test_a_url_that_is_no_webhooks_is_refused_and_not_shown(url):
    words = wrong(webhook_url=url)
    assert words.startswith("webhook_url: ")
    assert "s3cr3t" not in words


@pytest.mark.parametrize("host", ["hooks.slack.com", "hooks.slack-gov.com", "chat.example.com"])
def test_a_webhook_may_be_slacks_or_of_what_speaks_as_slack_does(host):
    url = f"https://{host}/services/T/B/x"
    assert settings(webhook_url=url).webhook_url.get_secret_value() == url


def test_a_plain_webhook_needs_an_allowed_network():
    plain = "http://chat.internal/services/T/B/s3cr3t"
    assert "https://" in wrong(webhook_url=plain)
    settings(webhook_url=plain, allow_networks=["10.0.0.0/8"])


@pytest.mark.parametrize(
    "api_url",
    [
        "http://slack.com/api",
        "https://slack.com.evil.example/api",
        "https://notslack.com/api",
        "https://evil.example/slack.com",
    ],
)
def test_the_token_is_sent_to_slack_alone(api_url):
    assert "slack-gov.com" in wrong(**BOT, api_url=api_url)


@pytest.mark.parametrize(
    "api_url", ["https://slack-gov.com/api", "https://acme.enterprise.slack.com/api"]
)
def test_governments_and_enterprises_have_addresses_of_their_own(api_url):
    assert settings(**BOT, api_url=f"{api_url}/").api_url == api_url


def test_a_private_stand_in_is_reached_where_that_is_allowed():
    settings(**BOT, api_url="http://10.1.2.3/api", allow_networks=["10.0.0.0/8"])


def test_secrets_are_references():
    assert Slack.Settings.secret_fields() == {"bot_token", "signing_secret", "webhook_url"}
