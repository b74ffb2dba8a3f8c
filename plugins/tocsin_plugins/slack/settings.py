"""Settings of a Slack destination."""

from __future__ import annotations

import re
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from tocsin import Channel, EventType, ServerUrl

OFFICIAL_HOSTS = ("slack.com", "slack-gov.com")
"""Slack's own, and those below them."""
_TOKEN = re.compile(r"xoxb-[0-9A-Za-z-]+")
_SERVICES = "/services/"


def is_official(host: str | None) -> bool:
    """Return whether a host is one of Slack's."""
    return any(host == it or (host or "").endswith(f".{it}") for it in OFFICIAL_HOSTS)


def _token(value: SecretStr) -> SecretStr:
    if not _TOKEN.fullmatch(value.get_secret_value()):
        raise ValueError(
            "give the token of a bot, which begins with xoxb-; tokens of people (xoxp-), of apps "
            "(xapp-) and those that end by rotation (xoxe.) do not serve"
        )
    return value


def _webhook_url(value: SecretStr) -> SecretStr:
    """Return the URL; what is wrong with it is said without showing it, since it is a secret."""
    text = value.get_secret_value()
    try:
        parts = urlsplit(text)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        named = False
    if not named or not text.isprintable() or set(text) & set(' \\#@"'):
        raise ValueError(
            "give the URL of an incoming webhook: https://hooks.slack.com/services/..."
        )
    if is_official(parts.hostname) and not parts.path.startswith(_SERVICES):
        raise ValueError(
            "give the URL of an incoming webhook: its path begins with /services/; "
            "those of workflows (/triggers/, /workflows/) take no messages"
        )
    return value


BotToken = Annotated[SecretStr, AfterValidator(_token)]
"""The token of a bot that does not end by rotation."""

ChannelId = Annotated[str, StringConstraints(pattern=r"^[CGD][A-Z0-9]{8,20}$")]
"""What Slack calls a conversation, whatever its name is at the moment."""

WebhookUrl = Annotated[SecretStr, AfterValidator(_webhook_url)]
"""The address of an incoming webhook, which is its credential as well."""


class Settings(Channel.Settings):
    """A bot and its channel, or an incoming webhook."""

    bot_token: BotToken | None = Field(
        default=None, description="The bot's token: xoxb-... This and `channel`, or `webhook_url`."
    )
    channel: ChannelId | None = Field(
        default=None,
        description="The channel's ID, such as C0123456789: Slack shows it at the end of the "
        "channel's details. A name can change.",
    )
    webhook_url: WebhookUrl | None = Field(
        default=None,
        description="The URL of an incoming webhook instead, without threads and updates.",
    )
    broadcast: tuple[EventType, ...] = Field(
        default=(EventType.INVESTIGATION_FAILED, EventType.SCHEDULE_DISABLED),
        description="Events that show in the channel as well when they are replies in a thread.",
    )
    api_url: ServerUrl = Field(
        default="https://slack.com/api",
        description="Where the API is; for GovSlack https://slack-gov.com/api.",
    )
    template: str = Field(
        default="slack", description="The receiver whose templates render the message."
    )
    concurrency: int = Field(
        default=1,
        ge=1,
        le=256,
        description="How many deliveries may be under way at once; one keeps them in their order.",
    )
    rate_limit: int | None = Field(
        default=50,
        ge=1,
        le=1_000_000,
        description="How many attempts a minute at most, over all nodes. Slack takes about one "
        "message a second for a channel, and 50 updates a minute.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.webhook_url and (self.bot_token or self.channel):
            raise ValueError("give bot_token and channel, or webhook_url: not both")
        if not self.webhook_url and not (self.bot_token and self.channel):
            raise ValueError("give bot_token and channel, or webhook_url")
        return self

    @model_validator(mode="after")
    def _credentials_go_to_slack(self) -> Self:
        parts = urlsplit(self.api_url)
        is_slack = parts.scheme == "https" and is_official(parts.hostname)
        if not is_slack and not self.allow_networks:
            raise ValueError(
                f"give an api_url of https:// and {' or '.join(OFFICIAL_HOSTS)}, or name in "
                "allow_networks the private network that this one leads to"
            )
        return self

    @model_validator(mode="after")
    def _plain_only_inside(self) -> Self:
        is_plain = self.webhook_url and self.webhook_url.get_secret_value().startswith("http://")
        if is_plain and not self.allow_networks:
            raise ValueError(
                "give a webhook_url of https://, or name in allow_networks the private network "
                "that this one leads to"
            )
        return self
