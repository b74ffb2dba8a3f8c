"""The kinds of field that the settings have."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr, StringConstraints

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
