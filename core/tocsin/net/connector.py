"""Guarded connector for aiohttp: resolver, sockets, connections and error texts.

Resolver and sockets are both needed. The resolver is not called for literal addresses, and the
socket factory sees one address at a time, so it cannot refuse a name for one forbidden address
among permitted ones. The connector relies on internals of aiohttp: see `pyproject.toml`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import AddrInfoType, Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.tracing import Trace

from tocsin.errors import CANNOT_CONNECT
from tocsin.net.addresses import AddressPolicy
from tocsin.net.tls import describe_ssl_error

_MAX_RESPONSES = 32
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


# Separate threads: a look-up that hangs keeps its thread after the time-out.
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
    (TimeoutError, "time-out"),
    (aiohttp.ClientConnectorDNSError, "name not found"),
    (aiohttp.ClientConnectorError, CANNOT_CONNECT),
    (aiohttp.ClientResponseError, "the response is not HTTP"),
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
            return f"it refuses the connection (status {error.status})"
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

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        while (connection := await super()._get(key, traces)) is not None:
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        return None


class _BoundedResponseHandler(ResponseHandler):
    """Closes a connection that receives many responses at once, including interim ones (1xx).

    aiohttp reads any number of them, so a server that sends nothing else would block this process
    until the time-out.
    """

    def feed_data(self, data: Any, size: int = 0) -> None:
        if len(self) < _MAX_RESPONSES:
            super().feed_data(data, size)
        elif self.transport is not None and not self.transport.is_closing():
            self.set_exception(HttpProcessingError(message="more responses than requests"))
            self.transport.close()
