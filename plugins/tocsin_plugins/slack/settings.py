"""Settings of a Slack destination."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from tocsin import Channel, EventType, MessageButton, ServerUrl

OFFICIAL_HOSTS = ("slack.com", "slack-gov.com")
"""Slack's domains."""
USER_ID = r"[UW][A-Z0-9]{5,20}"
"""Pattern of the IDs that Slack gives to people."""
_TOKEN = re.compile(r"xoxb-[0-9A-Za-z-]+")
_SERVICES = "/services/"


def is_official(host: str | None) -> bool:
    """Return whether a host belongs to Slack."""
    return any(host == name or (host or "").endswith(f".{name}") for name in OFFICIAL_HOSTS)


def _token(value: SecretStr) -> SecretStr:
    if not _TOKEN.fullmatch(value.get_secret_value()):
        raise ValueError(
            "use a bot token, which begins with xoxb-; user tokens (xoxp-), app tokens "
            "(xapp-) and rotating tokens (xoxe.) are not supported"
        )
    return value


def _webhook_url(value: SecretStr) -> SecretStr:
    """Return the URL; errors do not quote it, because it is a secret."""
    text = value.get_secret_value()
    try:
        parts = urlsplit(text)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        named = False
    if not named or not text.isprintable() or set(text) & set(' \\#@"'):
        raise ValueError("use the URL of an incoming webhook: https://hooks.slack.com/services/...")
    if is_official(parts.hostname) and not parts.path.startswith(_SERVICES):
        raise ValueError(
            "use the URL of an incoming webhook, whose path begins with /services/; "
            "workflow URLs (/triggers/, /workflows/) do not accept messages"
        )
    return value


def _people(value: Mapping[str, str]) -> Mapping[str, str]:
    for user in value:
        if not re.fullmatch(USER_ID, user):
            raise ValueError(f"{user!r} is not a Slack user ID, such as U0123456789")
    return value


BotToken = Annotated[SecretStr, AfterValidator(_token)]
"""Token of a bot whose app does not use token rotation."""

ChannelId = Annotated[str, StringConstraints(pattern=r"^[CGD][A-Z0-9]{8,20}$")]
"""Slack's ID for a conversation, which stays the same when the name changes."""

_PersonName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=r"^\P{Cc}+$"),
]

People = Annotated[Mapping[str, _PersonName], AfterValidator(_people)]
"""Names of people in Tocsin, by Slack user ID."""

WebhookUrl = Annotated[SecretStr, AfterValidator(_webhook_url)]
"""URL of an incoming webhook, which is its credential."""


class Settings(Channel.Settings):
    """Settings of a bot and its Slack channel, or of an incoming webhook."""

    bot_token: BotToken | None = Field(
        default=None,
        description="Bot token (xoxb-...). Set `bot_token` and `channel`, or set `webhook_url`.",
    )
    channel: ChannelId | None = Field(
        default=None,
        description="Channel ID, such as C0123456789, which Slack shows at the end of the "
        "channel's details. Unlike the name, the ID does not change.",
    )
    webhook_url: WebhookUrl | None = Field(
        default=None,
        description="URL of an incoming webhook, if you do not use a bot. Webhooks support "
        "neither threads nor updates.",
    )
    broadcast: tuple[EventType, ...] = Field(
        default=(EventType.INVESTIGATION_FAILED, EventType.SCHEDULE_DISABLED),
        description="Event types for which a reply in a thread also appears in the channel itself.",
    )
    follow_changes: bool = Field(
        default=False,
        description="Whether to update an incident's message when the severity, status or "
        "disposition changes, and to reply with the reports of investigations that people start. "
        "Requires a bot.",
    )
    buttons: tuple[MessageButton, ...] = Field(
        default=(),
        max_length=len(MessageButton),
        description="Buttons to add to incident messages: `acknowledge`, `assign` and "
        "dispositions. Slack shows the dispositions in a menu. Requires `signing_secret` and "
        "`people`.",
    )
    signing_secret: SecretStr | None = Field(
        default=None,
        min_length=16,
        max_length=200,
        description="Signing secret of the Slack app. Tocsin uses it to verify that button presses "
        "come from Slack.",
    )
    people: People = Field(
        default={},
        max_length=500,
        description="Who can use the buttons: each person's Slack user ID, with the name that the "
        'person has in Tocsin, such as `{ U0123456789 = "ana" }`. For everyone else, the buttons '
        "have no effect.",
    )
    api_url: ServerUrl = Field(
        default="https://slack.com/api",
        description="URL of Slack's API. For GovSlack, set https://slack-gov.com/api.",
    )
    template: str = Field(
        default="slack", description="Receiver whose templates render the message."
    )
    concurrency: int = Field(
        default=1,
        ge=1,
        le=256,
        description="Maximum number of concurrent deliveries. With 1, deliveries stay in order.",
    )
    rate_limit: int | None = Field(
        default=50,
        ge=1,
        le=1_000_000,
        description="Maximum number of attempts per minute, across all nodes. Slack accepts about "
        "one message per second in each channel, and 50 updates per minute.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.webhook_url and (self.bot_token or self.channel):
            raise ValueError("set either bot_token and channel, or webhook_url, but not both")
        if not self.webhook_url and not (self.bot_token and self.channel):
            raise ValueError("set bot_token and channel, or webhook_url")
        if self.webhook_url and self.follow_changes:
            raise ValueError(
                "set bot_token and channel instead of webhook_url, or remove follow_changes: an "
                "incoming webhook cannot update messages"
            )
        return self

    @model_validator(mode="after")
    def _buttons_for_people(self) -> Self:
        given = bool(self.buttons), self.signing_secret is not None, bool(self.people)
        if any(given) and not all(given):
            raise ValueError(
                "set buttons, signing_secret and people together, or none of them: without "
                "signing_secret and people, nobody can use the buttons"
            )
        if len(set(self.buttons)) < len(self.buttons):
            raise ValueError("buttons: list each button only once")
        return self

    @model_validator(mode="after")
    def _credentials_go_to_slack(self) -> Self:
        parts = urlsplit(self.api_url)
        is_slack = parts.scheme == "https" and is_official(parts.hostname)
        if not is_slack and not self.allow_networks:
            raise ValueError(
                f"use an https:// URL of {' or '.join(OFFICIAL_HOSTS)} as api_url, or add its "
                "private network to allow_networks"
            )
        return self

    @model_validator(mode="after")
    def _plain_only_inside(self) -> Self:
        is_plain = self.webhook_url and self.webhook_url.get_secret_value().startswith("http://")
        if is_plain and not self.allow_networks:
            raise ValueError(
                "use an https:// URL as webhook_url, or add its private network to allow_networks"
            )
        return self
