"""Guarded connections for protocols other than HTTP."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import cached_property

from aiohappyeyeballs import start_connection
from aiohttp.abc import ResolveResult
from aiohttp.connector import AddrInfoType

from tocsin.errors import CANNOT_CONNECT, Misconfigured, TryLater
from tocsin.net.addresses import AddressPolicy, Network
from tocsin.net.connector import BlockedError, GuardedResolver, GuardedSockets
from tocsin.net.tls import build_verifying_context
from tocsin.net.urls import literal_address

_NEXT_ADDRESS_SECONDS = 0.25  # RFC 8305 section 5
_HIGHEST_PORT = 65_535


def open_sockets(
    *,
    allow_networks: Sequence[Network] = (),
    allow_hosts: Collection[str] = (),
    ca_file: str | None = None,
    client_certificate: str | None = None,
    client_key: str | None = None,
) -> SocketOpener:
    """Return a factory of connections to public addresses, `allow_networks` and `allow_hosts`.

    The options are those of `open_client`. Raises OperatorError for an unsuitable file.
    """
    files = ca_file, client_certificate, client_key
    context = build_verifying_context(*files) if any(files) else None
    return SocketOpener(tuple(allow_networks), frozenset(allow_hosts), context)


class SocketOpener:
    """The `tocsin.Sockets` of a plugin."""

    def __init__(
        self,
        allow_networks: Sequence[Network],
        allow_hosts: Collection[str],
        context: ssl.SSLContext | None,
    ) -> None:
        self._allow_networks = tuple(allow_networks)
        self._allow_hosts = allow_hosts
        self._context = context

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """TLS context that verifies certificates and names."""
        return self._context or build_verifying_context(None, None, None)

    async def connect(
        self,
        host: str,
        port: int,
        *,
        plain: bool = False,
        timeout: timedelta = timedelta(seconds=20),
    ) -> socket.socket:
        """Return a connected non-blocking socket, which the caller closes.

        With `plain`, only `allow_networks` and `allow_hosts` are permitted. Raises `Misconfigured`
        for a forbidden address, and `TryLater` if nothing responds.
        """
        policy = self._choose_policy(host.lower(), port, plain=plain)
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                found = await GuardedResolver(policy).resolve(host.lower(), port)
                return await start_connection(
                    [_address_info(each) for each in found],
                    happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS,
                    socket_factory=GuardedSockets(policy),
                )
        except BlockedError:
            raise Misconfigured(_describe_refusal(host, plain=plain)) from None
        except OSError as error:  # includes TimeoutError
            raise TryLater(f"{host}, port {port}: {_describe_error(error)}") from None

    def _choose_policy(self, host: str, port: int, *, plain: bool) -> AddressPolicy:
        """Return the policy for connections; `Misconfigured` if nothing is permitted."""
        policy = AddressPolicy(
            networks=self._allow_networks, public=not plain, private=host in self._allow_hosts
        )
        try:
            address = literal_address(host)
        except ValueError:
            raise Misconfigured(f"{host!r} is neither a valid name nor an IP address") from None
        if not 0 < port <= _HIGHEST_PORT:
            raise Misconfigured(f"{port} is not a port number")
        if not policy.allows_any or (address is not None and not policy.allows(address)):
            raise Misconfigured(_describe_refusal(host, plain=plain))
        return policy


def _address_info(found: ResolveResult) -> AddrInfoType:
    is_old = found["family"] == socket.AF_INET
    address = found["host"], found["port"]
    return (
        found["family"],
        socket.SOCK_STREAM,
        found["proto"],
        "",
        address if is_old else (*address, 0, 0),
    )


def _describe_refusal(host: str, *, plain: bool) -> str:
    """Return why no connection is made; the same text for any address, to reveal nothing."""
    reason = f"the address of {host} is not allowed; add its network to allow_networks"
    return f"{reason} (without TLS, only these networks are allowed)" if plain else reason


def _describe_error(error: OSError) -> str:
    match error:
        case TimeoutError():
            return "timeout"
        case socket.gaierror():
            return "name not found"
    return CANNOT_CONNECT
