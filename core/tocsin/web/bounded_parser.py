"""Request parser that limits the size of a header and the number of small chunks in a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import EMPTY_PAYLOAD, StreamReader, web
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError
from aiohttp.web_protocol import RequestHandler

MAX_HEADER = 64 * 1024
"""Maximum size of a header, in bytes."""
MAX_FRAMING = 8 * 1024
"""How many bytes of framing any chunked body can have; larger bodies can have more."""
_BODY_PER_FRAMING = 6
"""How many bytes of body permit one more byte of framing (enough for chunks of 40 bytes)."""
_SLICE = 4 * 1024
"""How many bytes of a chunked body are parsed before their framing is checked."""

_Messages = Sequence[tuple[Any, StreamReader]]
_Parsed = tuple[_Messages, bool, bytes]
_NOTHING: _Parsed = ((), False, b"")


class HeaderTooLong(BadHttpMessage):
    """A header whose total size is too large."""


class BoundedParser:
    """Wraps a connection's parser and refuses requests that consist mostly of framing.

    Otherwise, any client could keep the parser busy with one-byte chunks or fill the memory with
    an endless header.
    """

    def __init__(self, parser: Any, protocol: RequestHandler) -> None:
        self._parser = parser
        self._protocol = protocol
        self._payload: StreamReader = EMPTY_PAYLOAD
        self._is_chunked = False
        self._received = 0
        self._unparsed = b""
        self._has_refused = False
        self.pause_reading = parser.pause_reading
        self.message_consumed = parser.message_consumed
        self.set_upgraded = parser.set_upgraded

    def feed_data(self, data: bytes) -> _Parsed:
        """Parse data; raises HeaderTooLong, or ends a body of small chunks with an error.

        While a request's body waits to be read, this method keeps new data unparsed, because a
        paused parser would make the data count as framing. `feed_data(b"")` continues parsing.
        """
        if self._is_paused:
            self._unparsed += data
            return _NOTHING
        if len(data) <= _SLICE and not self._unparsed:
            return self._feed(data)
        return self._feed_slices(data)

    @property
    def _is_paused(self) -> bool:
        return self._protocol._reading_paused  # noqa: SLF001 - see test_upstream_internals

    def _feed_slices(self, data: bytes) -> _Parsed:
        messages: list[tuple[Any, StreamReader]] = []
        # after a pause, the parser has a tail of its own, which comes first
        size = 0 if self._unparsed else self._find_slice_size(data)
        data, self._unparsed = self._unparsed + data, b""
        while data and not self._is_paused:
            try:
                found, is_upgraded, tail = self._feed(data[:size])
            except HttpProcessingError:
                if not messages:
                    raise
                self._refuse()  # after the requests before it
                break
            messages += found
            data = data[size:]
            size = self._find_slice_size(data)
            if is_upgraded:
                return messages, True, tail + data
        self._unparsed = b"" if self._has_refused else data
        return messages, False, b""

    def _find_slice_size(self, data: bytes) -> int:
        return _SLICE if self._payload is EMPTY_PAYLOAD or self._is_chunked else len(data)

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
        """Stop parsing, and end the current body, if any, with an error."""
        self._has_refused = True
        if self._payload is not EMPTY_PAYLOAD:
            self._payload.set_exception(web.RequestPayloadError("too many small chunks"))
