"""The guard inside aiohttp's connector: a resolver that judges answers, and sockets' last line.

Both are needed. The resolver is not asked about literal addresses, and the socket factory sees
one address at a time, so it cannot refuse a name for one bad answer among good ones.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

from tocsin.net.addresses import AddressPolicy

_IPV6_SOCKADDR_LENGTH = 4  # host, port, flow info, scope id


class BlockedError(OSError):
    """The address is one that may not be reached. An OSError, for aiohttp to clean up after."""


def _refuse_blocked(policy: AddressPolicy, host: object) -> None:
    try:
        allowed = policy.allows(ip_address(str(host)))
    except ValueError:
        allowed = False  # a name here would be resolved once more, behind the guard's back
    if not allowed:
        raise BlockedError("the address is not one that may be reached")


# Of their own, since a look-up that hangs keeps its thread though nobody waits for it any more.
_THREADS = ThreadPoolExecutor(16, thread_name_prefix="tocsin-dns")


class GuardedResolver(AbstractResolver):
    """Resolves names by the system's resolver, and refuses a name for any one bad address."""

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
        """Do nothing: the threads are everyone's."""


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
    """A socket factory for `aiohttp.TCPConnector`, called with each address to connect to."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy

    def __call__(self, address_info: AddrInfoType) -> socket.socket:
        """Return a new socket for the address; BlockedError if the policy forbids it."""
        family, kind, protocol, _, address = address_info
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise BlockedError("the address is not one of the Internet")
        if len(address) == _IPV6_SOCKADDR_LENGTH and address[-1] != 0:
            raise BlockedError("the address has a scope")
        _refuse_blocked(self._policy, address[0])
        return socket.socket(family, kind, protocol)
