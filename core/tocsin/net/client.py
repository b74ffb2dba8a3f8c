"""HTTP client for plugins: guarded, bounded, without redirects or cookies."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from importlib.metadata import version

import aiohttp
import structlog
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from tocsin.errors import Misconfigured, OperatorError, PluginFailure, TryLater
from tocsin.hookspecs import HttpResponse
from tocsin.net.addresses import AddressPolicy, Network
from tocsin.net.connector import (
    BlockedError,
    GuardedConnector,
    GuardedResolver,
    GuardedSockets,
    KeptConnections,
    describe_error,
    is_blocked_error,
    is_proxy_error,
    read_body,
)
from tocsin.net.tls import build_tls_context
from tocsin.net.urls import (
    build_policy,
    check_url,
    describe_refusal,
    literal_address,
    parse_proxy,
    parse_url,
)
from tocsin.time_limits import TimeLimits

# Below the 5 s after which common servers close an idle connection: a POST at that moment
# fails, and repeating it is not safe.
_KEEPALIVE_SECONDS = 4
_LOOK_UP_SECONDS = 2.0
_REMEMBERED_URLS = 256
_HEADERS = {"User-Agent": f"Tocsin/{version('tocsin')}", "Accept-Encoding": "identity"}

# A proxy may be private; it is the only host that such a client connects to.
_TO_THE_PROXY = AddressPolicy(public=True, private=True)


def open_client(
    *,
    allow_networks: Sequence[Network] = (),
    allow_hosts: Collection[str] = (),
    ca_file: str | None = None,
    client_certificate: str | None = None,
    client_key: str | None = None,
    proxy: str | None = None,
) -> GuardedClient:
    """Return a client that reaches public addresses, `allow_networks` and `allow_hosts`.

    `allow_hosts` are names or addresses without a port, which may resolve to private addresses. No
    request ever reaches a cloud metadata service. The files are PEM; `ca_file` replaces the
    system's authorities. With `proxy`, an `http://` URL, all requests go through it; it resolves
    names, and its own address may be private. The caller closes the client.

    Raises OperatorError, with a remedy, for an unsuitable file or proxy URL.
    """
    return GuardedClient(
        allow_networks,
        allow_hosts,
        build_tls_context(ca_file, client_certificate, client_key),
        _check_proxy(proxy) if proxy else None,
    )


def _check_proxy(text: str) -> URL:
    try:
        proxy = parse_proxy(text)
        check_url(proxy, _TO_THE_PROXY)
    except ValueError as error:
        raise OperatorError(f"proxy: {error}; use http://host:port") from None
    return proxy


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """A URL that may be requested; found by its identity, since a policy is slow to hash."""

    url: URL
    policy: AddressPolicy
    """What its connections may reach."""
    origin: str
    """All of the URL that may be logged: a path or query may be a secret."""


class GuardedClient:
    """A `tocsin.HttpClient` with one connection pool per policy."""

    def __init__(
        self,
        allow_networks: Sequence[Network],
        allow_hosts: Collection[str],
        tls: ssl.SSLContext | bool,
        proxy: URL | None,
    ) -> None:
        self._allow_networks = tuple(allow_networks)
        self._allow_hosts = frozenset(_raw_host(host) for host in allow_hosts)
        self._tls = tls
        self._proxy = proxy
        self._time_limits = TimeLimits()
        self._log = structlog.get_logger().bind()  # otherwise bound again for each request
        self._sessions: dict[AddressPolicy, aiohttp.ClientSession] = {}
        # A check costs a tenth of a request; resolved addresses are never cached.
        self._admit = lru_cache(_REMEMBERED_URLS)(self._judge)
        self._kept = lru_cache(_REMEMBERED_URLS)(self._find_kept)

    def check_url(self, url: str) -> None:
        """Raise `Misconfigured` if `url` can never be requested; sends nothing.

        Names are not resolved.
        """
        self._admit(url)

    async def vet_url(self, url: str) -> None:
        """Raise `Misconfigured` if `url` may not be requested, resolving its name now.

        A name that does not resolve within two seconds passes, as does every name behind a proxy:
        each connection is checked again.
        """
        target = self._admit(url)
        host = target.url.raw_host or ""
        if self._proxy or literal_address(host) is not None:
            return
        try:
            async with asyncio.timeout(_LOOK_UP_SECONDS):
                await GuardedResolver(target.policy).resolve(host)
        except BlockedError:
            raise Misconfigured(describe_refusal(target.url, target.policy)) from None
        except OSError:
            return

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
        """Return the response, its body cut at `limit` bytes; header names match in any case.

        Raises `Misconfigured` for a forbidden address, and `TryLater` if the server cannot be
        reached or does not respond in time.
        """
        target = self._admit(url)
        try:
            with self._time_limits.limit(timeout.total_seconds()):
                response = None
                if method == "POST" and content is not None and self._proxy is None:
                    response = await self._kept(target).post(headers or {}, content, limit)
                if response is None:
                    requesting = self._session(target.policy).request(
                        method, target.url, headers=headers, data=content, allow_redirects=False
                    )
                    response = await _read_response(requesting, limit)
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            # Without the cause: aiohttp's errors contain the full URL, which may hold a token.
            raise self._classify_failure(error, target.url) from None
        self._log.debug("request sent", method=method, to=target.origin, status=response.status)
        return response

    def _find_kept(self, target: _Target) -> KeptConnections:
        connector = self._session(target.policy).connector
        assert isinstance(connector, GuardedConnector)  # noqa: S101 - `_open_session` makes it
        return KeptConnections(connector, target.url, _HEADERS)

    async def close(self) -> None:
        """Close every connection."""
        self._kept.cache_clear()
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()

    def _judge(self, url: str) -> _Target:
        """Return the target of a URL; `Misconfigured` if it is forbidden."""
        try:
            target = parse_url(url)
            policy = self._choose_policy(target)
            check_url(target, policy)
        except ValueError as error:
            raise Misconfigured(str(error)) from None
        return _Target(target, _TO_THE_PROXY if self._proxy else policy, str(target.origin()))

    def _choose_policy(self, target: URL) -> AddressPolicy:
        return build_policy(target, self._allow_networks, self._allow_hosts)

    def _session(self, policy: AddressPolicy) -> aiohttp.ClientSession:
        if policy not in self._sessions:
            self._sessions[policy] = _open_session(policy, self._tls, self._proxy)
        return self._sessions[policy]

    def _classify_failure(self, error: Exception, target: URL) -> PluginFailure:
        if self._proxy and is_proxy_error(error):
            target = self._proxy
        if is_blocked_error(error):
            return Misconfigured(describe_refusal(target, self._choose_policy(target)))
        role = "the proxy " if target is self._proxy else ""
        return TryLater(f"{role}{target.host}, port {target.port}: {describe_error(error)}")


def _raw_host(host: str) -> str:
    return URL.build(scheme="https", host=host).raw_host or ""


def _open_session(
    policy: AddressPolicy, tls: ssl.SSLContext | bool, proxy: URL | None
) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=GuardedConnector(
            resolver=GuardedResolver(policy),
            socket_factory=GuardedSockets(policy),
            ssl=tls,
            # Nothing is cached, but connections that begin during a look-up share its result:
            # a look-up that hangs holds one thread, not one for each connection.
            use_dns_cache=True,
            ttl_dns_cache=0,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            limit=0,  # a destination's `concurrency` is the limit
        ),
        headers=_HEADERS,
        cookie_jar=aiohttp.DummyCookieJar(),
        # `request` enforces the timeout
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        proxy=proxy,
        trust_env=False,
        auto_decompress=False,
    )


async def _read_response(
    requesting: AbstractAsyncContextManager[aiohttp.ClientResponse], limit: int
) -> HttpResponse:
    async with requesting as response:
        body, truncated = await read_body(response.content, limit)
        return HttpResponse(
            status=response.status, headers=response.headers, body=body, truncated=truncated
        )
