"""Guarded connector for aiohttp: resolver, sockets, connections and error texts.

Resolver and sockets are both needed. The resolver is not called for literal addresses, and the
socket factory sees one address at a time, so it cannot refuse a name for one forbidden address
among permitted ones. The connector relies on internals of aiohttp: see `pyproject.toml`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp import StreamReader
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import AddrInfoType, Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_writer import _serialize_headers as serialize_headers
from aiohttp.tracing import Trace
from multidict import CIMultiDict
from yarl import URL

from tocsin.errors import CANNOT_CONNECT
from tocsin.hookspecs import HttpResponse
from tocsin.net.addresses import AddressPolicy
from tocsin.net.tls import describe_ssl_error

_MAX_RESPONSES = 32
_MAX_CONTENT = 65_536  # what a connection buffers without waiting for the receiver
_FRAMING = frozenset(
    ("connection", "content-encoding", "content-length", "expect", "transfer-encoding", "upgrade")
)
_INTERIM = range(100, 200)
_IPV6_SOCKADDR_LENGTH = 4  # host, port, flow info, scope id


class BlockedError(OSError):
    """The address is forbidden. An OSError, so that aiohttp cleans up after it."""


def _refuse_blocked(policy: AddressPolicy, host: object) -> None:
    try:
        allowed = policy.allows(ip_address(str(host)))
    except ValueError:
        allowed = False  # a name here would be resolved again, past the guard
    if not allowed:
        raise BlockedError("the address is not allowed")


# Separate threads: a look-up that hangs keeps its thread after the timeout.
_THREADS = ThreadPoolExecutor(16, thread_name_prefix="tocsin-dns")


class GuardedResolver(AbstractResolver):
    """Resolves names by the system's resolver; one forbidden address blocks a name."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of `host`; BlockedError if the policy forbids any of them."""
        answers = await asyncio.get_running_loop().run_in_executor(
            _THREADS, _look_up, host, port, family
        )
        for answer in answers:
            _refuse_blocked(self._policy, answer["host"])
        return answers

    async def close(self) -> None:
        """Do nothing: the threads are shared."""


def _look_up(host: str, port: int, family: int) -> list[ResolveResult]:
    answers = socket.getaddrinfo(
        host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=int(address[1]),
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, protocol, _, address in answers
    ]


class GuardedSockets:
    """Socket factory for `aiohttp.TCPConnector`, called with each address to connect to."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy

    def __call__(self, address_info: AddrInfoType) -> socket.socket:
        """Return a new socket for the address; BlockedError if the policy forbids it."""
        family, kind, protocol, _, address = address_info
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise BlockedError("not an Internet address")
        if len(address) == _IPV6_SOCKADDR_LENGTH and address[-1] != 0:
            raise BlockedError("the address has a scope")
        _refuse_blocked(self._policy, address[0])
        return socket.socket(family, kind, protocol)


# The first matching type describes the error.
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (TimeoutError, "timeout"),
    (aiohttp.ClientConnectorDNSError, "name not found"),
    (aiohttp.ClientConnectorError, CANNOT_CONNECT),
    (aiohttp.ClientResponseError, "the response is not HTTP"),
    (HttpProcessingError, "the response is not HTTP"),
    (Exception, "connection reset"),
)


def describe_error(error: Exception) -> str:
    """Describe an error without the URL, which may be secret."""
    match error.__cause__, error:
        case ssl.SSLCertVerificationError() as cause, _:
            return f"TLS certificate not valid ({cause.verify_message})"
        case ssl.SSLError() as cause, _:  # also the alert of a server that requires a certificate
            return f"TLS handshake failed ({describe_ssl_error(cause)})"
        case _, aiohttp.ClientHttpProxyError():
            return f"it refused the connection (status {error.status})"
    return next(reason for kind, reason in _REASONS if isinstance(error, kind))


def is_blocked_error(error: Exception) -> bool:
    """Return whether the guard forbade the connection."""
    return isinstance(getattr(error, "os_error", None), BlockedError)


def is_proxy_error(error: Exception) -> bool:
    """Return whether the error concerns the proxy, if any, and not the target."""
    return isinstance(
        error,
        aiohttp.ClientConnectorDNSError
        | aiohttp.ClientProxyConnectionError
        | aiohttp.ClientHttpProxyError,
    )


class GuardedConnector(aiohttp.TCPConnector):
    """Never reuses a connection that received an unsolicited response.

    aiohttp would take it for the response to the next request: a receipt for a delivery that was
    not sent. RFC 9112 section 6.3 forbids that. Servers also announce closing with a 408.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        answers: type[ResponseHandler] = _BoundedResponseHandler
        self._factory = partial(answers, loop=asyncio.get_running_loop())

    async def take_kept(self, key: ConnectionKey) -> Connection | None:
        """Return a kept connection that is fit for a request; None if there is none."""
        return await self._get(key, [])

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        while (connection := await super()._get(key, traces)) is not None:
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        return None


class _BoundedResponseHandler(ResponseHandler):
    """Closes a connection that receives many responses at once, including interim ones (1xx).

    aiohttp reads any number of them, so a server that sends nothing else would block this process
    until the timeout.
    """

    def feed_data(self, data: Any, size: int = 0) -> None:
        if len(self) < _MAX_RESPONSES:
            super().feed_data(data, size)
        elif self.transport is not None and not self.transport.is_closing():
            self.set_exception(HttpProcessingError(message="more responses than requests"))
            self.transport.close()


class KeptConnections:
    """POST requests to one URL over the kept connections of a connector.

    For each request, aiohttp makes a request, a response, a writer and a task, which take longer
    than all else that a delivery needs. Its connections and its parser are used here as well.
    """

    def __init__(
        self, connector: GuardedConnector, target: URL, defaults: Mapping[str, str]
    ) -> None:
        self._connector = connector
        self._line = f"POST {target.raw_path_qs} HTTP/1.1"
        self.key = ConnectionKey(
            host=target.raw_host or "",
            port=target.port,
            is_ssl=target.scheme == "https",
            ssl=True,  # the connector's own context
            proxy=None,
            proxy_auth=None,
            proxy_headers_hash=None,
        )
        """The key of the connections in the pool."""
        self._defaults = CIMultiDict(
            {"Host": target.host_port_subcomponent or "", **defaults, "Accept": "*/*"}
        )

    async def post(
        self, headers: Mapping[str, str], content: bytes, limit: int
    ) -> HttpResponse | None:
        """Return the response, its body cut at `limit` bytes; None if nothing was sent.

        Nothing is sent without a kept connection, for large content, or for headers that change how
        a request is sent. Raises the errors of aiohttp, HttpProcessingError among them.
        """
        if len(content) > _MAX_CONTENT or not _FRAMING.isdisjoint(map(str.lower, headers)):
            return None
        fields = CIMultiDict(self._defaults)
        fields.update(headers)
        fields.setdefault("Content-Type", "application/octet-stream")
        fields["Content-Length"] = str(len(content))
        head = serialize_headers(self._line, fields)
        connection = await self._connector.take_kept(self.key)
        if connection is None:
            return None
        try:
            response = await _exchange(connection, head + content, limit)
        except BaseException:
            connection.close()
            raise
        connection.release()  # closes it where the response is not over
        return response


async def _exchange(connection: Connection, request: bytes, limit: int) -> HttpResponse:
    protocol = connection.protocol
    assert protocol is not None and protocol.transport is not None  # noqa: PT018, S101 - connected
    protocol.set_response_params(read_until_eof=True, auto_decompress=False)
    protocol.transport.write(request)
    message, payload = await protocol.read()
    while message.code in _INTERIM and message.code != HTTPStatus.SWITCHING_PROTOCOLS:
        message, payload = await protocol.read()
    body, truncated = await read_body(payload, limit)
    return HttpResponse(
        status=message.code, headers=message.headers, body=body, truncated=truncated
    )


async def read_body(content: StreamReader, limit: int) -> tuple[bytes, bool]:
    """Return the body, cut at `limit` bytes, and whether it was cut."""
    if content.at_eof():
        return b"", False
    body = bytearray()
    while len(body) <= limit and not content.at_eof():
        body += await content.read(limit + 1 - len(body))
    return bytes(body[:limit]), len(body) > limit
