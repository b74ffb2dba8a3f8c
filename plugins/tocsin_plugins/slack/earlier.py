"""Looking for what an earlier attempt has posted, since Slack has no key for that."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tocsin import Event, Refused
from tocsin_plugins.slack.messages import is_message_of_event
from tocsin_plugins.slack.web_api import WebApi

_PER_PAGE = 200  # as many as Slack recommends
_MOST_PAGES = 5
_CLOCKS_DIFFER = timedelta(minutes=5)


async def find_posted_message(
    api: WebApi, channel: str, event: Event, thread_ts: str | None
) -> Mapping[str, Any] | None:
    """Return the message of this event that is there already, as Slack shows it.

    None where there is none, or where the bot may not look. Searched are the replies of the
    thread and the channel itself, where a reply ends up whose thread was deleted; from the event
    on, a thousand messages of each at most.
    """
    since = f"{(event.timestamp - _CLOCKS_DIFFER).timestamp():.6f}"
    place = {"channel": channel, "oldest": since}
    if thread_ts:
        replies = {**place, "ts": thread_ts}
        if found := await _search_messages(api, "conversations.replies", replies, event):
            return found
    return await _search_messages(api, "conversations.history", place, event)


async def _search_messages(
    api: WebApi, method: str, place: Mapping[str, str], event: Event
) -> Mapping[str, Any] | None:
    query: dict[str, Any] = {**place, "include_all_metadata": "true", "limit": _PER_PAGE}
    for _ in range(_MOST_PAGES):
        try:
            reply = await api.read(method, query)
        except Refused:  # where that is all that the bot may not do, it goes on without
            return None
        messages = reply.said.get("messages") or ()
        found: Mapping[str, Any] | None = next(
            (it for it in messages if is_message_of_event(it, event)), None
        )
        query["cursor"] = reply.part("response_metadata").get("next_cursor")
        if found or not query["cursor"]:
            return found
    return None
