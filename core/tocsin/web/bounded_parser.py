"""Parser of requests that bounds the size of a header, and the number of small chunks of a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import EMPTY_PAYLOAD, StreamReader, web
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError

MAX_HEADER = 64 * 1024
"""The most bytes of a header."""
MAX_FRAMING = 8 * 1024
"""The most bytes around the chunks of a body, beside those that its size allows."""
_BODY_PER_FRAMING = 6
"""The bytes of body that allow one more byte of framing: chunks of 40 bytes or more."""
_SLICE = 4 * 1024
"""The most bytes of chunks that are parsed before their size is judged."""

_Messages = Sequence[tuple[Any, StreamReader]]
_Parsed = tuple[_Messages, bool, bytes]
_NOTHING: _Parsed = ((), False, b"")


class HeaderTooLong(BadHttpMessage):
    """A header that is too large in all."""


class BoundedParser:
    """Wraps the parser of a connection, and refuses requests that are mostly framing.

    Otherwise, any client could keep the parser busy with chunks of one byte, and fill memory with
    headers that never end.
    """

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self._payload: StreamReader = EMPTY_PAYLOAD
        self._is_chunked = False
        self._received = 0
        self._has_refused = False
        self.pause_reading = parser.pause_reading
        self.message_consumed = parser.message_consumed
        self.set_upgraded = parser.set_upgraded

    def feed_data(self, data: bytes) -> _Parsed:
        """Parse data; raises HeaderTooLong, and ends a body of small chunks with an error."""
        if len(data) <= _SLICE:
            return self._feed(data)
        messages: list[tuple[Any, StreamReader]] = []
        while data:
            size = _SLICE if self._payload is EMPTY_PAYLOAD or self._is_chunked else len(data)
            try:
                found, is_upgraded, tail = self._feed(data[:size])
            except HttpProcessingError:
                if not messages:
                    raise
                self._refuse()  # after the requests before it
                break
            messages += found
            data = data[size:]
            if is_upgraded:
                return messages, True, tail + data
        return messages, False, b""

    def _feed(self, data: bytes) -> _Parsed:
        if self._has_refused:
            return _NOTHING
        parsed: _Parsed = self._parser.feed_data(data)
        self._received += len(data)
        if messages := parsed[0]:
            # in the same data, the end of the header cannot be told from the chunks after it
            self._payload, self._received = messages[-1][1], len(data)
            self._is_chunked = messages[-1][0].chunked
        if self._payload is not EMPTY_PAYLOAD and self._payload.is_eof():
            self._payload, self._received = EMPTY_PAYLOAD, len(data)
        if self._payload is EMPTY_PAYLOAD:
            if self._received > MAX_HEADER:
                self._refuse()
                raise HeaderTooLong("header too long")
        elif self._is_chunked:
            body = self._payload.total_compressed_bytes or self._payload.total_bytes
            if self._received - body > MAX_FRAMING + body // _BODY_PER_FRAMING:
                self._refuse()
        return parsed

    def _refuse(self) -> None:
        """Parse nothing more, and end the body that is under way, if any."""
        self._has_refused = True
        if self._payload is not EMPTY_PAYLOAD:
            self._payload.set_exception(web.RequestPayloadError("too many small chunks"))
