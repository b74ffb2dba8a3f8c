"""Connections on which the far side says no more than it was asked, where aiohttp lets it.

Both classes reach into what aiohttp does not publish; tests/faults notices if that changes.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.tracing import Trace

_MAX_RESPONSES = 32


class GuardedConnector(aiohttp.TCPConnector):
    """Uses no connection again on which an answer came that nobody had asked for.

    aiohttp takes it for the answer to the next request: a receipt for what was not even sent. RFC
    9112 section 6.3 forbids that. (Servers also announce so, with a 408, that they close.)
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        answers: type[ResponseHandler] = _BoundedResponseHandler
        self._factory = partial(answers, loop=asyncio.get_running_loop())

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        while (connection := await super()._get(key, traces)) is not None:
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        return None


class _BoundedResponseHandler(ResponseHandler):
    """Ends a connection on which many answers come at once, be they interim ones (1xx).

    aiohttp reads any number of them, and whoever sends nothing else holds up all that this
    process does until the time-out.
    """

    def feed_data(self, data: Any, size: int = 0) -> None:
        if len(self) < _MAX_RESPONSES:
            super().feed_data(data, size)
        elif self.transport is not None and not self.transport.is_closing():
            self.set_exception(HttpProcessingError(message="more answers than were asked for"))
            self.transport.close()
