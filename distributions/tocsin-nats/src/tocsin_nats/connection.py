"""Connection to the servers, which is opened in the background, and the stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig, StreamInfo
from nats.js.errors import APIError, NotFoundError
from nats.js.errors import Error as JetStreamError

import nats
from tocsin import IntakePosition, Tools, TryLater
from tocsin_nats.settings import NatsSettings

API_SECONDS = 2
DUPLICATE_SECONDS = 600
MAX_MESSAGE = 2**20
RETRY_SECONDS = 1
OVERLAPPING_SUBJECTS = 10065
"""The code of NATS for a stream whose subjects are those of another one."""

REFUSED = "the servers refuse the credentials; correct `user` and `password`, or `token`"


class NatsConnection:
    """Stays connected, and knows the stream, which it creates if there is none."""

    def __init__(self, settings: NatsSettings, tools: Tools) -> None:
        self._settings = settings
        self._tools = tools
        self._opening: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._is_closing = False
        self.stream: StreamInfo | None = None
        """The stream as it was last seen; None while it is unknown."""
        self.last_error = "not connected yet"

    def open(self) -> None:
        """Begin to connect."""
        self._opening = asyncio.create_task(self._stay_connected())

    async def close(self) -> None:
        """Close the connection."""
        self._is_closing = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._client is not None:
            with suppress(NatsError, OSError):
                await self._client.close()

    @property
    def client(self) -> Client:
        """The connected client; raises TryLater."""
        if self._client is None or not self._client.is_connected:
            raise TryLater(f"no NATS server is connected: {self.last_error}")
        return self._client

    @property
    def is_connected(self) -> bool:
        """Whether a server is connected."""
        return self._client is not None and self._client.is_connected

    @property
    def is_ready(self) -> bool:
        """Whether a server is connected and the stream known."""
        return self.is_connected and self.stream is not None

    @property
    def jetstream(self) -> JetStreamContext:
        """The streams; raises TryLater while no server is connected."""
        return self.client.jetstream(timeout=API_SECONDS)

    @property
    def incarnation(self) -> str:
        """The name of the present stream, which is unlike that of an earlier one."""
        if self.stream is None:
            raise TryLater(f"the stream {self._settings.stream} is not known: {self.last_error}")
        return name_stream(self.stream)

    async def load_stream(self) -> StreamInfo:
        """Return the current state of the stream; create it if there is none."""
        async with self.failures():
            streams = self.jetstream
            try:
                self.stream = await streams.stream_info(self._settings.stream)
            except NotFoundError:
                self.stream = await self._create_stream(streams)
                self._tools.log.warning("intake stream created", stream=self._settings.stream)
            return self.stream

    async def _create_stream(self, streams: JetStreamContext) -> StreamInfo:
        settings = self._settings
        try:
            return await streams.add_stream(self._describe_stream())
        except APIError as error:
            if "insufficient storage" in (error.description or ""):
                raise TryLater(
                    f"NATS: no room for a stream of {settings.max_mib:,} MiB; increase "
                    "`max_file_store` of the servers or reduce `max_mib`"
                ) from error
            if error.err_code == OVERLAPPING_SUBJECTS:
                raise TryLater(
                    f"NATS: another stream than {settings.stream} has the subjects "
                    f"{settings.subject}.*; correct `stream` or `subject`"
                ) from error
            raise

    @asynccontextmanager
    async def failures(self) -> AsyncIterator[None]:
        """Raise TryLater for what the servers or the network fail with."""
        try:
            yield
        except (NatsError, JetStreamError, OSError, TimeoutError) as error:
            self.last_error = str(error) or type(error).__name__
            raise TryLater(f"NATS: {self.last_error}") from error

    @asynccontextmanager
    async def publishing(self) -> AsyncIterator[None]:
        """Like `failures`; after a timeout, publish nothing until the stream answers again.

        A server that hangs may still store later what it has not acknowledged.
        """
        try:
            async with self.failures():
                yield
        except TryLater as error:
            if isinstance(error.__cause__, TimeoutError):
                self.stream = None
            raise

    def _describe_stream(self) -> StreamConfig:
        settings = self._settings
        return StreamConfig(
            name=settings.stream,
            description="Pushes that Tocsin has accepted",
            subjects=[f"{settings.subject}.*"],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            discard=DiscardPolicy.NEW,
            num_replicas=settings.replicas,
            max_age=settings.keep_for.total_seconds(),
            max_bytes=settings.max_mib * 2**20,
            max_msg_size=MAX_MESSAGE,
            duplicate_window=DUPLICATE_SECONDS,
            deny_delete=True,
            deny_purge=True,
        )

    async def _stay_connected(self) -> None:
        """Connect, however long it takes, and learn the stream whenever it is not known."""
        while not self._is_closing:  # the client can swallow a cancellation
            with suppress(NatsError, OSError, TimeoutError, TryLater):
                if self._client is None:
                    async with self.failures():
                        self._client = await nats.connect(**self._options())
                if self.stream is None:
                    await self.load_stream()
            await asyncio.sleep(RETRY_SECONDS)

    def _options(self) -> dict[str, Any]:
        settings = self._settings
        options: dict[str, Any] = {
            "servers": list(settings.servers),
            "name": "tocsin",
            "connect_timeout": API_SECONDS,
            "reconnect_time_wait": RETRY_SECONDS,
            "max_reconnect_attempts": -1,
            "ping_interval": 5,
            "max_outstanding_pings": 2,
            "error_cb": self._note_error,
            "disconnected_cb": self._forget_stream,
            "reconnected_cb": self._note_reconnection,
        }
        if any(server.startswith("tls://") for server in settings.servers):
            options["tls"] = self._tools.sockets.tls
        if settings.user is not None:
            options["user"] = settings.user
        if settings.password is not None:
            options["password"] = settings.password.get_secret_value()
        if settings.token is not None:
            options["token"] = settings.token.get_secret_value()
        if settings.credentials_file is not None:
            options["user_credentials"] = settings.credentials_file
        return options

    async def _note_error(self, error: Exception) -> None:
        if isinstance(error, ConnectionError) and self.last_error == REFUSED:
            return  # the servers also close a connection whose credentials they refuse
        text = str(error) or type(error).__name__
        self.last_error = REFUSED if "authorization violation" in text.lower() else text

    async def _forget_stream(self) -> None:
        self.stream = None
        if not self._is_closing:
            self._tools.log.warning("NATS disconnected", reason=self.last_error)

    async def _note_reconnection(self) -> None:
        self._tools.log.info("NATS reconnected")


def name_stream(stream: StreamInfo) -> str:
    """Return the name of a stream, by the time of its creation."""
    created: Any = stream.created
    moment = datetime.fromisoformat(created) if isinstance(created, str) else created
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def place(stream: StreamInfo, sequence: int) -> IntakePosition:
    """Return a place in a stream."""
    return IntakePosition(name_stream(stream), sequence)
