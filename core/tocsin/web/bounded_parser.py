"""Parser of requests that bounds the size of a header, and the number of small chunks of a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import EMPTY_PAYLOAD, StreamReader, web
from aiohttp.http_exceptions import BadHttpMessage

MAX_FRAMING = 64 * 1024
"""The most bytes of a request beside its body: its header, and the sizes of its chunks."""
_BODY_PER_FRAMING = 8
"""The bytes of body that allow one more byte of framing: chunks of 40 bytes or more."""

_Parsed = tuple[Sequence[tuple[Any, StreamReader]], bool, bytes]
_NOTHING: _Parsed = ((), False, b"")


class HeaderTooLong(BadHttpMessage):
    """A header that is too large in all."""


class BoundedParser:
    """Wraps the parser of a connection, and refuses requests that are mostly framing.

    Whoever reaches the port could otherwise keep the parser busy with chunks of one byte, and fill
    memory with headers that never end.
    """

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self._payload: StreamReader = EMPTY_PAYLOAD
        self._received = 0
        self._has_refused = False
        self.pause_reading = parser.pause_reading
        self.message_consumed = parser.message_consumed
        self.set_upgraded = parser.set_upgraded

    def feed_data(self, data: bytes) -> _Parsed:
        """Parse data; raises HeaderTooLong, and ends a body of small chunks with an error."""
        if self._has_refused:
            return _NOTHING
        parsed: _Parsed = self._parser.feed_data(data)
        self._received += len(data)
        if messages := parsed[0]:
            self._payload, self._received = messages[-1][1], len(data)
        if self._payload is not EMPTY_PAYLOAD and self._payload.is_eof():
            self._payload, self._received = EMPTY_PAYLOAD, len(data)
        if self._received > MAX_FRAMING:
            self._require_body()
        return parsed

    def _require_body(self) -> None:
        payload = self._payload
        if payload is EMPTY_PAYLOAD:
            self._has_refused = True
            raise HeaderTooLong("header too long")
        body = payload.total_compressed_bytes or payload.total_bytes
        if self._received - body > MAX_FRAMING + body // _BODY_PER_FRAMING:
            self._has_refused = True
            payload.set_exception(web.RequestPayloadError("too many small chunks"))
