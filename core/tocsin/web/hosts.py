"""Check of the `Host` header: a page of another site must not reach this service by its own name.

A browser that resolves such a name to this service (DNS rebinding) treats both as one site.
"""

from __future__ import annotations

from ipaddress import ip_address

from aiohttp import hdrs, web
from yarl import URL

from tocsin.web.problems import ProblemError

LOCAL = "localhost"
PROBES = frozenset({"/healthz", "/readyz"})
"""Paths that answer under any name: probes use the address of the node."""
SCRAPED = "/metrics"
"""The path that answers under any name if a token protects it."""
MISDIRECTED = 421


class HostCheck:
    """Accepts requests for the names in the URLs of this service, and for this machine."""

    def __init__(self, *urls: str, has_metrics_token: bool) -> None:
        self._url = urls[0]
        self._names = frozenset(_normalize(URL(url).raw_host or "") for url in urls)
        self._exempt = PROBES | ({SCRAPED} if has_metrics_token else set())

    def require(self, request: web.Request) -> None:
        """Raise ProblemError (421, RFC 9110 section 15.5.20) if the request names another host."""
        if request.path in self._exempt:
            return
        named = request.headers.getall(hdrs.HOST, [])
        if len(named) != 1 or not self._is_ours(named[0]):
            raise ProblemError(
                MISDIRECTED,
                f"The Host header must name {self._url}. Set TOCSIN_BASE_URL to the URL that "
                "callers use, and have proxies pass on the header.",
            )

    def _is_ours(self, named: str) -> bool:
        try:
            name = _normalize(URL(f"http://{named}").raw_host or "")
        except ValueError:
            return False
        return name in self._names or name == LOCAL or _is_loopback(name)


def _normalize(name: str) -> str:
    return name.casefold().removesuffix(".")


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
