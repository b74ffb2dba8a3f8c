"""The HTTP client that plugins are handed: guarded, bounded, without redirects or cookies."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from importlib.metadata import version

import aiohttp
from yarl import URL

from tocsin.errors import PluginFailure, Refused, TryLater
from tocsin.hookspecs import HttpResponse
from tocsin.net.addresses import Network, Policy
from tocsin.net.guard import BlockedError, GuardedResolver, GuardedSockets
from tocsin.net.urls import check_url, literal_address, parse_url, policy_for, refusal

# Below the 5 s after which common servers close an idle connection: a POST sent into that moment
# fails and cannot be repeated unseen.
_KEEPALIVE_SECONDS = 4

# The first that fits an error says what happened.
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (TimeoutError, "time-out"),
    (aiohttp.ClientConnectorDNSError, "name not found"),
    (aiohttp.ClientConnectorCertificateError, "TLS certificate not valid"),
    (aiohttp.ClientSSLError, "TLS handshake failed"),
    (ssl.SSLError, "TLS handshake failed"),
    (aiohttp.ClientConnectorError, "cannot connect"),
    (aiohttp.ClientResponseError, "the answer is not HTTP"),
    (Exception, "connection reset"),
)


def open_client(
    *, allow_networks: Sequence[Network] = (), allow_hosts: Collection[str] = ()
) -> GuardedClient:
    """Return a client that reaches public addresses, `allow_networks` and `allow_hosts`.

    `allow_hosts` are names or addresses, without a port; what they lead to may be private. No
    request ever reaches a cloud's metadata service. Close the client when done with it.
    """
    return GuardedClient(allow_networks, allow_hosts)


class GuardedClient:
    """A `tocsin.HttpClient` that holds one pool of connections for each policy that it needs."""

    def __init__(self, allow_networks: Sequence[Network], allow_hosts: Collection[str]) -> None:
        self._allow_networks = tuple(allow_networks)
        self._allow_hosts = frozenset(_raw_host(host) for host in allow_hosts)
        self._sessions: dict[Policy, aiohttp.ClientSession] = {}

    def check_url(self, url: str) -> None:
        """Return where `url` may be requested; `Refused` where it never can. Sends nothing."""
        try:
            check_url(url, self._allow_networks)
        except ValueError as error:
            raise Refused(str(error)) from None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: timedelta = timedelta(seconds=20),
        limit: int = 16_384,
    ) -> HttpResponse:
        """Return the answer, its body cut at `limit` bytes; header names match in any case.

        Raises `Refused` where the address is one that may not be reached, and `TryLater` where
        the far side could not be reached or did not answer in time.
        """
        target, session = self._admit(url)
        try:
            async with (
                asyncio.timeout(timeout.total_seconds()),
                session.request(
                    method, target, headers=headers, data=content, allow_redirects=False
                ) as response,
            ):
                return await _read(response, limit)
        except (aiohttp.ClientError, OSError) as error:
            # Without the cause: aiohttp's errors show the whole URL, which may hold a token.
            raise _failure(error, target) from None

    async def close(self) -> None:
        """Close every connection."""
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()

    def _admit(self, url: str) -> tuple[URL, aiohttp.ClientSession]:
        try:
            target = parse_url(url)
            address = literal_address(target.raw_host or "")
        except ValueError as error:
            raise Refused(str(error)) from None
        policy = policy_for(target, self._allow_networks, self._allow_hosts)
        if address is not None and not policy.allows(address):
            raise Refused(refusal(target))
        if policy not in self._sessions:
            self._sessions[policy] = _session(policy)
        return target, self._sessions[policy]


def _raw_host(host: str) -> str:
    return URL.build(scheme="https", host=host).raw_host or ""


def _session(policy: Policy) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            resolver=GuardedResolver(policy),
            socket_factory=GuardedSockets(policy),
            use_dns_cache=False,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            limit=0,  # a destination's `concurrency` is the limit
        ),
        headers={"User-Agent": f"Tocsin/{version('tocsin')}", "Accept-Encoding": "identity"},
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # `request` keeps the time
        trust_env=False,
        auto_decompress=False,
    )


async def _read(response: aiohttp.ClientResponse, limit: int) -> HttpResponse:
    body = bytearray()
    while chunk := await response.content.read(limit + 1 - len(body)):
        body += chunk
    return HttpResponse(
        status=response.status,
        headers=response.headers,
        body=bytes(body[:limit]),
        truncated=len(body) > limit,
    )


def _failure(error: Exception, url: URL) -> PluginFailure:
    if isinstance(getattr(error, "os_error", None), BlockedError):
        return Refused(refusal(url))
    reason = next(words for kind, words in _REASONS if isinstance(error, kind))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        detail = getattr(error.certificate_error, "verify_message", "")
        reason = f"{reason} ({detail})" if detail else reason
    return TryLater(f"{url.host}, port {url.port}: {reason}")
