"""Simulator of Slack's Web API and incoming webhooks on loopback, with their quirks.

Errors come with HTTP 200, messages are named by their time, replies are not in a channel's history,
a reply to a deleted message becomes a message of its own, metadata shows only where all of it is
asked for, and blocks beyond a limit are refused.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any, Self

import orjson
from aiohttp import web

from tocsin.testing import Fault, ManualClock
from tocsin.testing.faults import spoil
from tocsin.testing.server import LoopbackServer

from .blocks import judge

TOKEN = "xoxb-token-of-the-simulator"
CHANNEL = "C0123456789"
WEBHOOK = "/services/T0123/B4567/s3cr3tOfTheWebhook"
SCOPES = frozenset(
    {"chat:write", "channels:read", "groups:read", "channels:history", "groups:history"}
)
LONGEST_TEXT = 40_000
LONGEST_UPDATED_TEXT = 4_000
LONGEST_PAGE = 999
_MINUTE = timedelta(minutes=1)
_RETRY = {"Retry-After": "30"}

Message = dict[str, Any]


class ApiError(Exception):
    """Error that a method returns with `ok: false`."""

    def __init__(self, error: str, **members: Any) -> None:
        super().__init__(error)
        self.document = {"ok": False, "error": error, **members}


@dataclass
class Channel:
    """A conversation and its messages."""

    id: str
    name: str = "soc-alerts"
    is_private: bool = False
    is_archived: bool = False
    is_member: bool = True
    messages: list[Message] = field(default_factory=list)

    def find(self, ts: str | None) -> Message | None:
        return next((message for message in self.messages if message["ts"] == ts), None)

    def delete(self, ts: str) -> None:
        self.messages.remove(self.find(ts))

    @property
    def roots(self) -> list[Message]:
        """Messages that the channel itself shows; of the replies, only broadcast ones."""
        return [message for message in self.messages if _is_in_channel(message)]

    def replies(self, ts: str) -> list[Message]:
        return [
            message
            for message in self.messages
            if message.get("thread_ts") == ts and message["ts"] != ts
        ]


@dataclass(frozen=True)
class Asked:
    """A call that the simulator received."""

    method: str
    arguments: Mapping[str, Any]


class Slack:
    """One workspace with one app; `async with` serves it, at `url`."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.channels = {CHANNEL: Channel(CHANNEL)}
        self.scopes = set(SCOPES)
        self.asked: list[Asked] = []
        self.most_per_minute: dict[str, int] = {}
        """Limit of calls for each method; further calls get 429."""
        self.edit_window_closed = False
        self.webhook_answers: deque[tuple[int, str]] = deque()
        """Responses to the next posts to the webhook; if empty, 200 and `ok`."""
        self.webhook_bodies: list[dict[str, Any]] = []
        self._faults: list[tuple[str, Fault | ApiError, bool]] = []
        self._numbers = count(100)
        self._called_at: dict[str, list[Any]] = {}
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._handle)
        app.router.add_post(WEBHOOK, self._handle_webhook)
        self._server = LoopbackServer(app)

    # what a test uses

    @property
    def url(self) -> str:
        return f"{self._server.url}/api"

    @property
    def webhook_url(self) -> str:
        return f"{self._server.url}{WEBHOOK}"

    @property
    def channel(self) -> Channel:
        return self.channels[CHANNEL]

    def fail(self, fault: Fault | str, where: str = "", *, done: bool = False) -> None:
        """Let one call to a method that contains `where` fail, with a fault or with Slack's error.

        With `done`, an error is said of what was done all the same.
        """
        self._faults.append((where, ApiError(fault) if type(fault) is str else fault, done))

    @property
    def faults_left(self) -> int:
        return len(self._faults)

    def calls_of(self, method: str) -> list[Asked]:
        return [call for call in self.asked if call.method == method]

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__()

    # how calls are answered

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        arguments = dict(request.query) if request.method == "GET" else await request.json()
        self.asked.append(Asked(method, arguments))

        async def answer() -> web.Response:
            return self._answer(request, method, arguments)

        return await self._spoil(method, request, answer)

    async def _spoil(
        self, method: str, request: web.Request, answer: Callable[[], Awaitable[web.Response]]
    ) -> web.StreamResponse:
        for index, (where, fault, done) in enumerate(self._faults):
            if where in method:
                del self._faults[index]
                if isinstance(fault, Fault):
                    now = self.clock.now()
                    return await spoil(fault, request, answer, now, timedelta(seconds=30))
                if done:
                    await answer()
                return _json(fault.document, headers=_RETRY)
        return await answer()

    def _answer(
        self, request: web.Request, method: str, arguments: Mapping[str, Any]
    ) -> web.Response:
        if self._is_too_much(method):
            limited = {"ok": False, "error": "ratelimited"}
            return _json(limited, status=429, headers=_RETRY)
        handlers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "auth.test": self._identity,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "conversations.history": self._history,
            "conversations.info": self._info,
            "conversations.replies": self._replies,
        }
        headers = {"X-OAuth-Scopes": ",".join(sorted(self.scopes))}
        try:
            self._authenticate(request)
            return _json({"ok": True, **handlers[method](arguments)}, headers=headers)
        except ApiError as error:
            return _json(error.document, headers=headers)

    def _is_too_much(self, method: str) -> bool:
        now, most = self.clock.now(), self.most_per_minute.get(method)
        recent = [moment for moment in self._called_at.get(method, ()) if moment > now - _MINUTE]
        if most is not None and len(recent) >= most:
            return True
        self._called_at[method] = [*recent, now]
        return False

    def _authenticate(self, request: web.Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not token:
            raise ApiError("not_authed")
        if token != TOKEN:
            raise ApiError("invalid_auth")

    def _need(self, scope: str) -> None:
        if scope not in self.scopes:
            provided = ",".join(sorted(self.scopes))
            raise ApiError("missing_scope", needed=scope, provided=provided)

    def _identity(self, _: Mapping[str, Any]) -> dict[str, Any]:
        names = {"url": "https://example.slack.com/", "team": "Example", "user": "tocsin"}
        return {**names, "team_id": "T0123", "user_id": "U0123", "bot_id": "B0123"}

    def _seen(self, arguments: Mapping[str, Any]) -> Channel:
        channel = self.channels.get(str(arguments.get("channel")))
        if channel is None or (channel.is_private and not channel.is_member):
            raise ApiError("channel_not_found")
        return channel

    def _info(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._of_kind(arguments, "read")
        names = ("id", "name", "is_private", "is_archived", "is_member")
        return {"channel": {name: getattr(channel, name) for name in names}}

    def _of_kind(self, arguments: Mapping[str, Any], scope: str) -> Channel:
        """Return a channel, if the app has the scope for this kind of channel."""
        known = self.channels.get(str(arguments.get("channel")))
        self._need(f"{'groups' if known and known.is_private else 'channels'}:{scope}")
        return self._seen(arguments)

    def _readable(self, arguments: Mapping[str, Any]) -> Channel:
        channel = self._of_kind(arguments, "history")
        if not channel.is_member:
            raise ApiError("not_in_channel")
        return channel

    def _history(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        found = _since(self._readable(arguments).roots, arguments)
        return _page(found[::-1], arguments)

    def _replies(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._readable(arguments)
        parent = channel.find(arguments.get("ts"))
        if parent is None:
            raise ApiError("thread_not_found")
        replies = _since(channel.replies(parent["ts"]), arguments)
        return _page([parent, *replies], arguments)

    def _post(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._need("chat:write")
        channel = self._seen(arguments)
        if not channel.is_member and "chat:write.public" not in self.scopes:
            raise ApiError("not_in_channel")
        if channel.is_archived:
            raise ApiError("is_archived")
        message = {**_content(arguments), "type": "message", "ts": self._ts(), "bot_id": "B0123"}
        message["text"] = message.get("text", "")[:LONGEST_TEXT]
        # Slack refuses no reply whose thread is gone: it posts it to the channel
        if channel.find(arguments.get("thread_ts")):
            message["thread_ts"] = arguments["thread_ts"]
            channel.find(arguments["thread_ts"])["thread_ts"] = arguments["thread_ts"]
            if arguments.get("reply_broadcast"):
                message["subtype"] = "thread_broadcast"
        channel.messages.append(message)
        return {"channel": channel.id, "ts": message["ts"], "message": message}

    def _update(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._need("chat:write")
        channel = self._seen(arguments)
        message = channel.find(arguments.get("ts"))
        if message is None:
            raise ApiError("message_not_found")
        if self.edit_window_closed:
            raise ApiError("edit_window_closed")
        content = _content(arguments)
        if len(content.get("text", "")) > LONGEST_UPDATED_TEXT:
            raise ApiError("msg_too_long")
        message.update(content)  # what is not given, such as metadata, is kept
        return {"channel": channel.id, "ts": message["ts"], "text": message.get("text")}

    def _ts(self) -> str:
        return f"{int(self.clock.now().timestamp())}.{next(self._numbers):06}"

    async def _handle_webhook(self, request: web.Request) -> web.StreamResponse:
        status, text = 200, "ok"

        async def answer() -> web.Response:
            self.webhook_bodies.append(await request.json())
            return web.Response(status=status, text=text)

        if self.webhook_answers:
            status, text = self.webhook_answers.popleft()
            return web.Response(status=status, text=text, headers=_RETRY)
        return await self._spoil("webhook", request, answer)


def _content(arguments: Mapping[str, Any]) -> Message:
    """Return a message's content; raises `ApiError` if Slack would reject it."""
    if not arguments.get("text") and not arguments.get("blocks"):
        raise ApiError("no_text")
    if "blocks" in arguments and (wrong := judge(arguments["blocks"])):
        error, details = wrong
        messages = [f"[ERROR] {detail}" for detail in details]
        raise ApiError(error, errors=details, response_metadata={"messages": messages})
    metadata = arguments.get("metadata")
    if metadata is not None and set(metadata) != {"event_type", "event_payload"}:
        raise ApiError("invalid_metadata_format")
    kept = ("text", "blocks", "metadata", "link_names", "parse")
    return {name: arguments[name] for name in kept if name in arguments}


def _is_in_channel(message: Message) -> bool:
    is_reply = message.get("thread_ts", message["ts"]) != message["ts"]
    return not is_reply or message.get("subtype") == "thread_broadcast"


def _since(messages: list[Message], arguments: Mapping[str, Any]) -> list[Message]:
    oldest = float(arguments.get("oldest", 0))
    return [message for message in messages if float(message["ts"]) > oldest]


def _page(messages: list[Message], arguments: Mapping[str, Any]) -> dict[str, Any]:
    start = int(b64decode(arguments["cursor"])) if arguments.get("cursor") else 0
    end = start + min(int(arguments.get("limit", 100)), LONGEST_PAGE)
    following = b64encode(str(end).encode()).decode() if end < len(messages) else ""
    shows_all = arguments.get("include_all_metadata") in ("true", "1", True)
    return {
        "messages": [
            message if shows_all else _without_payload(message) for message in messages[start:end]
        ],
        "has_more": bool(following),
        "response_metadata": {"next_cursor": following},
    }


def _without_payload(message: Message) -> Message:
    if "metadata" not in message:
        return message
    return {**message, "metadata": {"event_type": message["metadata"]["event_type"]}}


def _json(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    body = orjson.dumps(content)
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")
