"""Health check of a bot and its channel."""

from __future__ import annotations

from collections.abc import Container, Iterator

from tocsin import CredentialsRefused, Health
from tocsin_plugins.slack.failures import describe_missing_scope, find_remedy
from tocsin_plugins.slack.web_api import SlackReply, WebApi

_NOT_ALLOWED = "missing_scope"
_OUTSIDE = "not_in_channel"
_HIDDEN = frozenset({"channel_not_found", _OUTSIDE, "no_permission", "access_denied"})
_TOLD = _HIDDEN | {_NOT_ALLOWED}
_SHOWN = 80


async def check_bot(api: WebApi, channel: str) -> Health:
    """Report which bot it is, and whether it can post to the channel and see it.

    If the bot cannot read the channel's messages, the detail says what the bot then cannot do.
    """
    try:
        identity = await api.read("auth.test", {})
    except CredentialsRefused as error:
        return Health(
            detail="no further checks, because Slack does not accept the token",
            problems=(f"bot_token: {error}",),
        )
    asked = {"channel": channel}
    info = await api.read("conversations.info", asked, unless=_TOLD)
    history = await api.read("conversations.history", asked | {"limit": "1"}, unless=_TOLD)
    return Health(
        detail=f"{_describe_identity(identity)} posts to {_describe_channel(info, channel)}; "
        f"{_describe_history(history)}",
        problems=tuple(_list_problems(identity, info, history)),
    )


def _describe_identity(reply: SlackReply) -> str:
    user, team = (str(reply.document.get(name))[:_SHOWN] for name in ("user", "team"))
    return f"{user} in the workspace {team}"


def _describe_channel(info: SlackReply, channel: str) -> str:
    if info.error == _NOT_ALLOWED:
        needed = str(info.document.get("needed"))[:_SHOWN]
        return f"{channel} (to see its name and whether it is archived, grant the scope {needed})"
    name = info.part("channel").get("name")
    return f"#{str(name)[:_SHOWN]}" if name else channel


def _describe_history(history: SlackReply) -> str:
    if history.error is None:
        return "the bot can find its earlier messages, so it does not post any event twice"
    needed = f"the scope {str(history.document.get('needed'))[:_SHOWN]}"
    lacks = needed if history.error == _NOT_ALLOWED else "membership in the channel"
    return (
        f"without {lacks}, the bot cannot find its earlier messages, so it may post an event twice "
        "after a crash"
    )


def _list_problems(identity: SlackReply, info: SlackReply, history: SlackReply) -> Iterator[str]:
    scopes = identity.scopes
    if scopes is not None and "chat:write" not in scopes:
        yield f"bot_token: {describe_missing_scope('chat:write')}"
    if info.part("channel").get("is_archived"):
        yield "channel: the channel is archived; unarchive it, or use another channel"
    elif error := _find_expected_error(scopes or frozenset(), info, history):
        yield f"channel: {find_remedy(error, {})}"


def _find_expected_error(
    scopes: Container[str], info: SlackReply, history: SlackReply
) -> str | None:
    """Return the error that Slack would return for a message; None if it would accept one.

    Everyone can see a public channel, but only members can see its messages.
    """
    if info.error in _HIDDEN:
        return info.error
    if history.error == _OUTSIDE or info.part("channel").get("is_member") is False:
        return None if "chat:write.public" in scopes else _OUTSIDE
    return history.error if history.error in _HIDDEN else None
