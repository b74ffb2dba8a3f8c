"""Slack messages: content, threads, and messages of earlier attempts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tocsin import Delivery, Event, Misconfigured, Refused, parse_json
from tocsin_plugins.slack.web_api import WebApi

_TS = re.compile(r"\d{1,12}\.\d{1,9}")
_MARK = "tocsin_event"
PLAIN_TEXT_OPTIONS = {"link_names": False, "unfurl_links": False, "unfurl_media": False}
"""Keeps Slack from making mentions and previews of what others wrote."""


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message of a channel, by its time, which is its name there."""

    ts: str
    thread_ts: str | None
    """The time of the first message of its thread; None where it is in none."""

    @staticmethod
    def of(said: Mapping[str, Any]) -> SlackMessage | None:
        """Return the message that Slack shows; None for what is no message."""
        ts, thread_ts = said.get("ts"), said.get("thread_ts")
        if not isinstance(ts, str) or not _TS.fullmatch(ts):
            return None
        return SlackMessage(ts, thread_ts if isinstance(thread_ts, str) else None)

    def remote_id(self, channel: str) -> str:
        """Return what a receipt calls the thread that it is in, or begins."""
        return f"{channel}/{self.thread_ts or self.ts}"

    def link(self, workspace: str, channel: str) -> str:
        """Return where a person sees it.

        In the form that chat.getPermalink answers: https://docs.slack.dev/reference/methods/chat.getPermalink
        """
        address = f"{workspace.rstrip('/')}/archives/{channel}/p{self.ts.replace('.', '')}"
        if self.thread_ts in (None, self.ts):
            return address
        return f"{address}?thread_ts={self.thread_ts}&cid={channel}"


@dataclass(frozen=True, slots=True)
class SlackThread:
    """The thread that an event belongs to."""

    ts: str
    is_own: bool
    """Whether its first message tells of the event's own subject, and not of a related one."""


def find_thread(delivery: Delivery, channel: str) -> SlackThread | None:
    """Return the thread of the event's subject, or of the one incident that it is about.

    None where it begins one: there is none in this channel, or it is about several incidents, of
    which none has more right to it than the others.
    """
    if ts := _in(channel, delivery.remote_id):
        return SlackThread(ts, is_own=delivery.remote_id not in delivery.related.values())
    incidents = [it for it in delivery.event.related if it.startswith("incident:")]
    if len(incidents) == 1 and (ts := _in(channel, delivery.related.get(incidents[0]))):
        return SlackThread(ts, is_own=False)
    return None


def _in(channel: str, remote_id: str | None) -> str | None:
    """Return the time of a thread's first message, None where it is not of this channel."""
    there, _, ts = (remote_id or "").partition("/")
    return ts if there == channel and _TS.fullmatch(ts) else None


def render_content(delivery: Delivery) -> dict[str, Any]:
    """Return what the template makes of the event; `Misconfigured` where that is no message."""
    body = parse_json(delivery.render("body"))
    if not isinstance(body, dict):
        raise Misconfigured('the template gives no JSON object, such as {"blocks": [...]}')
    return body


def build_metadata(event: Event) -> dict[str, Any]:
    """Return the metadata that tells which event a message is of.

    https://docs.slack.dev/messaging/message-metadata
    """
    return {"event_type": _MARK, "event_payload": {"event_id": event.id}}


def is_message_of_event(said: Any, event: Event) -> bool:
    """Return whether what Slack shows is the message of this event."""
    metadata = said.get("metadata") if isinstance(said, Mapping) else None
    return isinstance(metadata, Mapping) and all(
        metadata.get(name) == value for name, value in build_metadata(event).items()
    )


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
            (message for message in messages if is_message_of_event(message, event)), None
        )
        query["cursor"] = reply.part("response_metadata").get("next_cursor")
        if found or not query["cursor"]:
            return found
    return None
