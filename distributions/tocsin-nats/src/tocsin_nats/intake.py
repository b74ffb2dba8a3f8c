"""Intake on NATS JetStream: one stream, and a pull consumer for each reader of a provider."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote
from uuid import uuid4

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import Error as JetStreamError

from tocsin import (
    ConflictError,
    Health,
    Intake,
    IntakePage,
    IntakePosition,
    IntakePush,
    Metric,
    QueuedPush,
    Tools,
    TryLater,
)
from tocsin_nats.connection import NatsConnection, place
from tocsin_nats.health import find_problems
from tocsin_nats.settings import NatsSettings

RECEIVED = "Tocsin-Received"
PUBLISH_SECONDS = 1.8
"""Less than what the sender's request waits for the intake."""
WAIT_SECONDS = 3
CHUNK = 50
"""The number of pushes that the server sends at once, of up to 1 MiB each."""
MAX_PAGE_BYTES = 16 * 2**20
MAX_UNACKNOWLEDGED = 2000
FORGOTTEN_SECONDS = 600
"""How long the servers keep a consumer that nobody reads."""


@dataclass(slots=True)
class _Cursor:
    """A consumer of this reader alone, and the place up to which its messages were received."""

    consumer: str
    subscription: JetStreamContext.PullSubscription
    position: IntakePosition
    last: Msg | None = None
    delivered: int = 0
    """The deliveries that arrived. The servers count them too, so that none is lost unnoticed."""
    is_broken: bool = False


class NatsIntake(Intake[NatsSettings]):
    """Accepts pushes into a stream of NATS JetStream."""

    max_bytes = 2**20 - 4096  # with its headers, a message must fit into 1 MiB

    def __init__(self, settings: NatsSettings, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._connection = NatsConnection(settings, tools)
        self._cursors: dict[str, _Cursor] = {}
        self._waiting: dict[str, int] = {}

    @property
    def is_available(self) -> bool:
        """Whether a server is connected that has the stream."""
        return self._connection.is_ready

    async def start(self) -> None:
        """Begin to connect."""
        self._connection.open()

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def check(self) -> Health:
        """Return the version, the replicas and the size of the stream, and what makes it unsafe."""
        return await find_problems(self._connection, self.settings, self.tools)

    async def publish(self, push: IntakePush) -> IntakePosition:
        """Publish a push, and return its place once the servers have acknowledged it."""
        headers = {
            "Nats-Msg-Id": f"{push.provider}/{quote(push.key, safe='')}",
            RECEIVED: push.received_at.isoformat(),
        }
        incarnation = self._connection.incarnation
        async with self._connection.publishing():
            streams = self._connection.jetstream
            acknowledged = await streams.publish(
                self._subject(push.provider),
                push.body,
                timeout=PUBLISH_SECONDS,
                stream=self.settings.stream,
                headers=headers,
            )
            if acknowledged.duplicate:
                known = await streams.get_msg(self.settings.stream, acknowledged.seq)
                if known.data != push.body:
                    raise ConflictError("another push has this key")
        return IntakePosition(incarnation, acknowledged.seq)

    async def fetch(self, provider: str, position: IntakePosition | None, limit: int) -> IntakePage:
        """Return what follows a position; make the consumer again where it is elsewhere."""
        stream = await self._connection.load_stream()
        known = place(stream, 0)
        sequence = position.sequence if position and position.stream == known.stream else 0
        # A server can lose the end of a stream, and the start expires
        sequence = max(min(sequence, stream.state.last_seq), stream.state.first_seq - 1, 0)
        start = place(stream, sequence)
        try:
            async with self._connection.failures():
                cursor = await self._find_cursor(provider, start)
                messages = await self._receive(cursor, limit)
                if messages:
                    cursor.last = messages[-1]
                    end = place(stream, _number(messages[-1]))
                    self._waiting[provider] = messages[-1].metadata.num_pending
                else:
                    is_empty = await self._is_empty(provider, cursor)
                    end = place(stream, stream.state.last_seq) if is_empty else start
        except BaseException:
            if provider in self._cursors:
                self._cursors[provider].is_broken = True
            raise
        cursor.position = end
        return IntakePage(start, [_to_push(message) for message in messages], end)

    async def acknowledge(self, provider: str, position: IntakePosition) -> None:
        """Acknowledge all messages up to the last one that was fetched."""
        cursor = self._cursors.get(provider)
        if cursor is None or cursor.last is None or cursor.position != position:
            return
        async with self._connection.failures():
            await cursor.last.ack()
        cursor.last = None

    def list_metrics(self) -> Sequence[Metric]:
        """Return what was last seen of the servers."""
        stream = self._connection.stream
        metrics = [
            Metric(
                name="connected",
                description="1 if a NATS server that has the stream is connected, otherwise 0",
                value=float(self.is_available),
            )
        ]
        if stream is not None:
            state = (("messages", stream.state.messages), ("bytes", stream.state.bytes))
            metrics += [
                Metric(
                    name=f"stream_{name}", description=f"Size of the stream, in {name}", value=value
                )
                for name, value in state
            ]
        metrics += [
            Metric(
                name="waiting",
                description="Pushes to a provider that the node has not fetched yet",
                value=count,
                labels={"provider": provider},
            )
            for provider, count in self._waiting.items()
        ]
        return metrics

    def _subject(self, provider: str) -> str:
        return f"{self.settings.subject}.{provider}"

    async def _find_cursor(self, provider: str, start: IntakePosition) -> _Cursor:
        """Return a consumer that continues from a place.

        Its name is new each time. Another node could otherwise take messages from it, and continue
        after the place to which it counted on an earlier consumer of the name.
        """
        cursor = self._cursors.get(provider)
        if cursor is not None and cursor.position == start and not cursor.is_broken:
            return cursor
        streams, name = self._connection.jetstream, f"store-{provider}-{uuid4().hex}"
        if cursor is not None:
            with suppress(NatsError, JetStreamError):
                await cursor.subscription.unsubscribe()
            with suppress(NatsError, JetStreamError):
                await streams.delete_consumer(self.settings.stream, cursor.consumer)
        await streams.add_consumer(
            self.settings.stream,
            ConsumerConfig(
                durable_name=name,
                description="Pushes that Tocsin is to store",
                filter_subject=self._subject(provider),
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=start.sequence + 1,
                ack_policy=AckPolicy.ALL,
                ack_wait=30,
                max_deliver=-1,
                max_ack_pending=MAX_UNACKNOWLEDGED,
                inactive_threshold=FORGOTTEN_SECONDS,
            ),
        )
        subscription = await streams.pull_subscribe_bind(name, stream=self.settings.stream)
        self._cursors[provider] = _Cursor(name, subscription, start)
        return self._cursors[provider]

    async def _receive(self, cursor: _Cursor, limit: int) -> list[Msg]:
        """Return the next messages, none if none comes in time.

        Raises TryLater if a delivery did not arrive. Numbers in the stream do not show it, because
        the messages to other providers are between them.
        """
        messages: list[Msg] = []
        size, after = 0, cursor.position.sequence
        while len(messages) < limit and size < MAX_PAGE_BYTES:
            wanted = min(CHUNK, limit - len(messages))
            try:
                found = await cursor.subscription.fetch(
                    wanted, timeout=0.2 if messages else WAIT_SECONDS
                )
            except TimeoutError:  # nats-py raises both its own and the built-in one
                break
            for message in found:
                cursor.delivered += 1
                _expect_delivery(cursor, message.metadata.sequence.consumer)
            # What was not acknowledged in time comes again
            new = [message for message in found if _number(message) > after]
            if new:
                after = _number(new[-1])
            messages += new
            size += sum(len(message.data) for message in new)
            if len(found) < wanted:
                break
        return messages

    async def _is_empty(self, provider: str, cursor: _Cursor) -> bool:
        """Return whether the consumer has nothing more, rather than no connection."""
        found = await cursor.subscription.consumer_info()
        if found.delivered is not None:
            _expect_delivery(cursor, found.delivered.consumer_seq)
        self._waiting[provider] = found.num_pending or 0
        return not (found.num_pending or found.num_ack_pending)


def _expect_delivery(cursor: _Cursor, number: int) -> None:
    """Raise TryLater if the number of a delivery is not that of the last one that arrived."""
    if number != cursor.delivered:
        raise TryLater(
            f"NATS: delivery {cursor.delivered} was expected and {number} found, so a message was "
            "lost; reading again from the last stored push"
        )


def _number(message: Msg) -> int:
    return int(message.metadata.sequence.stream)


def _to_push(message: Msg) -> QueuedPush:
    return QueuedPush(_number(message), _find_time(message), message.data)


def _find_time(message: Msg) -> datetime:
    """Return when the push was received; when the stream got it if somebody else published it."""
    try:
        received_at = datetime.fromisoformat((message.headers or {})[RECEIVED])
    except (KeyError, ValueError):
        return message.metadata.timestamp
    return message.metadata.timestamp if received_at.tzinfo is None else received_at
