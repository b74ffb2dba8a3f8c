"""What a destination in Slack can be told."""

from __future__ import annotations

from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from tocsin import Channel, EventType, ServerUrl
from tocsin_plugins.slack.fields import OFFICIAL_HOSTS, BotToken, ChannelId, WebhookUrl, is_official


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
