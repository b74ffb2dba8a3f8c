"""RDAP client with redirects (RFC 7480)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urljoin, urlsplit

from tocsin import Broken, HttpResponse, Refused, Tools, TryLater, parse_json, retry_after

MOST_REDIRECTS = 3
_MOST_BYTES = 4 * 1024 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_THROTTLED = frozenset({429, 503})
_ABSENT = frozenset(
    {400, 404, 422}
)  # some servers answer 400 or 422 for names that cannot exist there
_OK, _SERVER_ERROR = 200, 500
_ACCEPT = {"Accept": "application/rdap+json, application/json"}


class RdapClient:
    """Reads JSON from any RDAP server."""

    def __init__(self, tools: Tools, timeout: timedelta) -> None:
        self._tools = tools
        self._timeout = timeout

    async def get(self, url: str) -> dict[str, Any] | None:
        """Return the object at a URL; None if the server has none.

        Follows redirects to the responsible server (RFC 7480 section 5.2), except from https to
        http. Raises TryLater, Broken and Refused.
        """
        for _ in range(1 + MOST_REDIRECTS):
            response = await self._tools.http.request(
                "GET", url, headers=_ACCEPT, timeout=self._timeout, limit=_MOST_BYTES
            )
            if response.status not in _REDIRECTS:
                return self._judge(response, url)
            url = _target(url, response)
        raise Broken(f"GET {url}: too many redirects")

    def _judge(self, response: HttpResponse, url: str) -> dict[str, Any] | None:
        status, outcome = response.status, f"GET {url} returned {response.status}"
        if status in _ABSENT:
            return None
        if status in _THROTTLED:
            after = retry_after(response.headers, self._tools.clock.now())
            raise TryLater(outcome, after=after, throttled=True, status=status)
        if status >= _SERVER_ERROR:
            raise Broken(outcome)
        if status != _OK:
            raise Refused(outcome, status=status)
        return _parse(response, outcome)


def _target(url: str, response: HttpResponse) -> str:
    try:
        target = urljoin(url, response.headers.get("Location", ""))
        came, goes = urlsplit(url).scheme, urlsplit(target).scheme
    except ValueError:
        target, came, goes = "", "", ""
    if target in ("", url) or goes not in ("https", came):
        raise Refused(f"GET {url:.200}: redirect not followed: {target:.200}")
    return target


def _parse(response: HttpResponse, outcome: str) -> dict[str, Any]:
    if response.truncated:
        raise Broken(f"{outcome} with more than {_MOST_BYTES:,} bytes")
    try:
        found = parse_json(response.body)
    except ValueError:
        raise Broken(f"{outcome} with a body that is not JSON") from None
    if not isinstance(found, dict):
        raise Broken(f"{outcome} with JSON that is not an object")
    return found
