"""Slack messages: content, threads and messages that earlier attempts posted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tocsin import Delivery, Event, Misconfigured, Refused, parse_json
from tocsin_plugins.slack.buttons import ButtonValues, add_buttons
from tocsin_plugins.slack.settings import Settings
from tocsin_plugins.slack.web_api import WebApi

_PER_PAGE = 200  # recommended by Slack
_MOST_PAGES = 5
_CLOCKS_DIFFER = timedelta(minutes=5)
_TS = re.compile(r"\d{1,12}\.\d{1,9}")
_MARK = "tocsin_event"
PLAIN_TEXT_OPTIONS = {"link_names": False, "unfurl_links": False, "unfurl_media": False}
"""Options that prevent mentions and previews in untrusted text."""


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message in a channel, identified by its time."""

    ts: str
    thread_ts: str | None
    """Time of its thread's first message; None if the message is not in a thread."""

    @staticmethod
    def of(document: Mapping[str, Any]) -> SlackMessage | None:
        """Return the message in Slack's representation; None if it is not a message."""
        ts, thread_ts = document.get("ts"), document.get("thread_ts")
        if not isinstance(ts, str) or not _TS.fullmatch(ts):
            return None
        return SlackMessage(ts, thread_ts if isinstance(thread_ts, str) else None)

    def remote_id(self, channel: str) -> str:
        """Return the ID that receipts contain for the thread that the message is in or starts."""
        return f"{channel}/{self.thread_ts or self.ts}"

    def link(self, workspace: str, channel: str) -> str:
        """Return the URL of the message.

        The URL has the form that chat.getPermalink returns:
        https://docs.slack.dev/reference/methods/chat.getPermalink
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
    """Whether its first message is about the event's own subject, not a related one."""


def find_thread(delivery: Delivery, channel: str) -> SlackThread | None:
    """Return the thread of the event's subject, or of the only incident that the event is about.

    None if the event starts a new thread. This is the case if the channel does not have a thread
    for it yet, or if the event is about several incidents, none of which takes precedence.
    """
    if ts := _in(channel, delivery.remote_id):
        return SlackThread(ts, is_own=delivery.remote_id not in delivery.related.values())
    incidents = [subject for subject in delivery.event.related if subject.startswith("incident:")]
    if len(incidents) == 1 and (ts := _in(channel, delivery.related.get(incidents[0]))):
        return SlackThread(ts, is_own=False)
    return None


def _in(channel: str, remote_id: str | None) -> str | None:
    """Return the time of a thread's first message; None if it is in another channel."""
    there, _, ts = (remote_id or "").partition("/")
    return ts if there == channel and _TS.fullmatch(ts) else None


def render_content(delivery: Delivery, settings: Settings, public_url: str) -> dict[str, Any]:
    """Return the event's rendered message with the destination's buttons.

    Raises `Misconfigured` if the template does not render a message.
    """
    body = parse_json(delivery.render("body"))
    if not isinstance(body, dict):
        raise Misconfigured('the template must render a JSON object, such as {"blocks": [...]}')
    if settings.buttons and settings.signing_secret is not None:
        values = ButtonValues(public_url, settings.signing_secret.get_secret_value())
        add_buttons(body, delivery, settings.buttons, values)
    return body


def build_metadata(event: Event) -> dict[str, Any]:
    """Return the metadata that says which event a message belongs to.

    https://docs.slack.dev/messaging/message-metadata
    """
    return {"event_type": _MARK, "event_payload": {"event_id": event.id}}


def is_message_of_event(document: Any, event: Event) -> bool:
    """Return whether a message in Slack's representation belongs to this event."""
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    return isinstance(metadata, Mapping) and all(
        metadata.get(name) == value for name, value in build_metadata(event).items()
    )


async def find_posted_message(
    api: WebApi, channel: str, event: Event, thread_ts: str | None
) -> Mapping[str, Any] | None:
    """Return the message that was already posted for this event, in Slack's representation.

    None if there is none, or if the bot is not allowed to search. Searches the thread's replies
    and then the channel itself, where replies end up if their thread was deleted. Each search
    starts at the time of the event and covers up to a thousand messages.
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
        except Refused:  # if only this permission is missing, delivery continues
            return None
        messages = reply.document.get("messages") or ()
        found: Mapping[str, Any] | None = next(
            (message for message in messages if is_message_of_event(message, event)), None
        )
        query["cursor"] = reply.part("response_metadata").get("next_cursor")
        if found or not query["cursor"]:
            return found
    return None
