"""HTTP client of a provider, and what each response means."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import unquote, urlencode, urlsplit

import orjson
from multidict import CIMultiDict
from pydantic import Field

from tocsin.errors import Broken, CredentialsRefused, PluginFailure, Refused, TryLater
from tocsin.fields import Duration, FileOnly, LocalPath, PluginSettings, ServerUrl
from tocsin.hookspecs import HttpResponse, Tools
from tocsin.json_codec import parse_json
from tocsin.model import Json
from tocsin.redaction import Redactor, list_secret_values
from tocsin.servers import find_server

_LONGEST_DELAY = timedelta(hours=24)
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_MAX_EXCERPT = 200
_MAX_BODY = 16_384
_TRANSIENT = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
_EPOCH_SECONDS = re.compile(r"\d{10}")
_RESET_DELAY = re.compile(r"\d{1,6}")  # longer numbers are times
_THROTTLING = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return the delay that a server requests, at most 24 hours; None if it does not request one.

    The `Retry-After` header contains a number of seconds or a date in any of the three forms that
    RFC 9110 allows (sections 10.2.3 and 5.6.7). Fractions of a second are accepted, because some
    servers send them. A past date is ignored. If this header is missing, the delay comes from
    `X-RateLimit-RetryAfter` (CrowdStrike), a time in seconds since 1970, or from
    `X-RateLimit-Reset` (Datadog), a number of seconds.
    """
    value = headers.get("Retry-After", "").strip()
    if not value and (reset := _EPOCH_SECONDS.fullmatch(headers.get("X-RateLimit-RetryAfter", ""))):
        value = str(int(reset[0]) - now.timestamp())
    if not value and _RESET_DELAY.fullmatch(reset_in := headers.get("X-RateLimit-Reset", "")):
        value = reset_in
    try:
        delay = _parse_seconds(value) if _SECONDS.fullmatch(value) else _parse_date(value) - now
    except (ValueError, OverflowError):  # no date, or one outside the calendar
        return None
    return min(delay, _LONGEST_DELAY) if delay > timedelta(0) else None


def parse_server_time(headers: Mapping[str, str]) -> datetime | None:
    """Return the server time in the header `Date`, to the second, or None if there is none."""
    try:
        return _parse_date(headers.get("Date", ""))
    except (ValueError, OverflowError):
        return None


def classify_response(response: HttpResponse, what: str, now: datetime) -> PluginFailure | None:
    """Return the error for a response to `what`, None for a complete success.

    A provider is read again after the delay of a `TryLater` (`incidents/sync/pauses.py`).
    """
    status, body = response.status, response.body[:_MAX_BODY]
    message = f"{what} returned {status}{_format_excerpt(body[:_MAX_EXCERPT])}"
    if status == HTTPStatus.PARTIAL_CONTENT:
        message = f"{what} returned only part of the results{_format_warning(response)}"
        return TryLater(message, status=status)
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    if status in _TRANSIENT:
        # A date follows the server's clock, which may differ from ours
        after = retry_after(response.headers, parse_server_time(response.headers) or now)
        throttled = status in _THROTTLING
        return TryLater(message, after=after, throttled=throttled, status=status, response=body)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return CredentialsRefused(message, status=status, response=body)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Broken(message)
    return Refused(f"{message}{_format_location(response)}", status=status, response=body)


def _format_excerpt(body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "replace").split())
    return f": {text}" if text else ""


def _format_warning(response: HttpResponse) -> str:
    return f": {response.headers.get('Warning', '')}"[:_MAX_EXCERPT]


def _format_location(response: HttpResponse) -> str:
    location = response.headers.get("Location")
    return f"; it redirects to {location[:_MAX_EXCERPT]}" if location else ""


def _parse_seconds(value: str) -> timedelta:
    return timedelta(seconds=min(float(value), _LONGEST_DELAY.total_seconds()))


def _parse_date(value: str) -> datetime:
    date = parsedate_to_datetime(value)
    return date if date.tzinfo else date.replace(tzinfo=UTC)


RENEWAL_MARGIN = timedelta(seconds=60)
"""A grant that expires sooner is renewed before use."""
MAX_BYTES = 16 * 1024 * 1024
"""The maximum size of a response body."""
_MAX_PATH = 80


class ApiSettings(PluginSettings):
    """Settings for clients of an HTTP API.

    In the list of base classes, put the settings class of your plugin's base class, such as
    `WindowedProvider.Settings`, before `ApiSettings`.
    """

    url: ServerUrl = Field(description="The API's base URL, such as https://siem.example.com.")
    timeout: Duration = Field(
        default=timedelta(seconds=60),
        gt=timedelta(0),
        le=timedelta(minutes=10),
        description="How long Tocsin waits for the response to a request.",
    )
    ca_file: LocalPath | None = Field(
        default=None,
        description="The file with the CA certificates (PEM) that Tocsin trusts instead of "
        "the system's CA certificates.",
    )
    client_certificate: LocalPath | None = Field(
        default=None,
        description="The file with the client certificate (PEM), for servers or proxies that "
        "request one.",
    )
    client_key: LocalPath | None = Field(
        default=None,
        description="The file with the client certificate's private key, if the certificate's "
        "file does not contain the key.",
    )
    proxy: Annotated[str, FileOnly] | None = Field(
        default=None, description="The URL of the HTTP proxy for all requests."
    )


@dataclass(frozen=True, slots=True)
class Grant:
    """Result of a sign-in: a value for the `Authorization` header, and when it expires."""

    authorization: str
    expires_at: datetime | None = None
    """When the authorization expires; None if unknown."""


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A complete, successful response."""

    json: Json
    """The decoded body; None if it is empty."""
    status: int
    """The status code, from 200 to 299."""
    headers: Mapping[str, str]
    """Names are case-insensitive."""
    server_time: datetime | None
    """The current time according to the server, to the second; None if unknown."""


class Api:
    """Client for a server's HTTP API, which sends requests to URLs below the base URL.

    `Api` calls `sign_in` before the first request, and again before a later request if the grant
    expires within a minute. If a response has status 401, `Api` calls `sign_in` and sends the
    request once more. In `sign_in`, send requests with `signed=False`.
    """

    def __init__(
        self,
        tools: Tools,
        settings: ApiSettings,
        *,
        sign_in: Callable[[], Awaitable[Grant]] | None = None,
    ) -> None:
        self._tools = tools
        self._settings = settings
        self._sign_in = sign_in
        self._grant: Grant | None = None
        self._signing_in = asyncio.Lock()

    async def get(self, path: str, **query: Any) -> ApiResponse:
        """Send a GET request and return the response.

        Query parameters that are None are not sent.
        """
        return await self.request("GET", path, query=query)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        json: Json = None,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> ApiResponse:
        """Send a request and return a successful response, whose body is JSON or empty.

        `path` starts with a slash, or is a URL below the base URL, such as a link to the next page.
        For any other URL, raises `Broken`, so that the grant is never sent to another server.

        The request fails with one of these errors:

        - `TryLater` if the server is unreachable, for a partial response (206), and for 408, 425,
          429, 502, 503 and 504; its `after` is the delay that the server requests
        - `CredentialsRefused` for 401 and 403
        - `Refused` for any other 4xx, and for redirects
        - `Broken` for any other 5xx, and for a body that is not JSON or is longer than 16 MiB
        """
        url, content, kind = self._url(path, query), None, {}
        if json is not None:
            content, kind = orjson.dumps(json), {"Content-Type": "application/json"}
        elif form is not None:
            content = urlencode(form).encode()
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
        fields = {"Accept": "application/json", **kind, **(headers or {})}

        async def send(authorization: Mapping[str, str]) -> HttpResponse:
            return await self._tools.http.request(
                method,
                url,
                headers={**fields, **authorization},
                content=content,
                timeout=self._settings.timeout,
                limit=MAX_BYTES,
            )

        response = await (self._signed(send) if signed and self._sign_in else send({}))
        return self._judge(response, f"{method} {path}")

    async def _signed(
        self, send: Callable[[Mapping[str, str]], Awaitable[HttpResponse]]
    ) -> HttpResponse:
        grant = await self._current_grant()
        response = await send({"Authorization": grant.authorization})
        if response.status != 401:  # noqa: PLR2004 - the number is clear
            return response
        grant = await self._renew(grant)
        return await send({"Authorization": grant.authorization})

    async def _current_grant(self) -> Grant:
        grant = self._grant
        if grant is None or self._ends_soon(grant):
            return await self._renew(grant)
        return grant

    def _ends_soon(self, grant: Grant) -> bool:
        ends = grant.expires_at
        return ends is not None and ends - self._tools.clock.now() < RENEWAL_MARGIN

    async def _renew(self, stale: Grant | None) -> Grant:
        """Return a grant newer than the stale one; concurrent callers share one sign-in."""
        async with self._signing_in:
            if self._grant is stale or self._grant is None:
                assert self._sign_in is not None  # noqa: S101 - a grant implies a sign-in
                self._grant = None
                self._grant = await self._sign_in()
            return self._grant

    def _judge(self, response: HttpResponse, what: str) -> ApiResponse:
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            response = self._without_secrets(response)
        if failure := classify_response(response, what, self._tools.clock.now()):
            if isinstance(failure, CredentialsRefused):
                self._grant = None
            raise failure
        if response.truncated:
            raise Broken(f"{what} returned more than {MAX_BYTES:,} bytes")
        return ApiResponse(
            json=_parse_body(response, what),
            status=response.status,
            headers=response.headers,
            server_time=parse_server_time(response.headers),
        )

    def _without_secrets(self, response: HttpResponse) -> HttpResponse:
        """Return an error response without secrets that the server repeats."""
        grant = self._grant.authorization.rpartition(" ")[2] if self._grant else ""
        redactor = Redactor((*list_secret_values(self._settings), grant))
        headers = CIMultiDict(
            (name, redactor.clean(value)) for name, value in response.headers.items()
        )
        body = redactor.clean_bytes(response.body[:_MAX_BODY])
        return replace(response, headers=headers, body=body)

    def _url(self, path: str, query: Mapping[str, Any] | None) -> str:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        encoded = urlencode(given, doseq=True)
        url = path if "://" in path else f"{self._settings.url}{path}"
        if not _is_below(url, self._settings.url):
            raise Broken(f"{path[:_MAX_PATH]!r} is outside {self._settings.url}")
        return url + (f"?{encoded}" if encoded else "")


def _is_below(url: str, server: str) -> bool:
    """Whether a URL is on this server and inside its base path."""
    try:
        is_same = find_server(url) == find_server(server) is not None
        return is_same and ".." not in unquote(urlsplit(url).path).split("/")
    except ValueError:  # no URL
        return False


def _parse_body(response: HttpResponse, what: str) -> Json:
    if not response.body.strip():
        return None
    try:
        return parse_json(response.body)
    except ValueError:
        kind = response.headers.get("Content-Type", "no content type")
        raise Broken(f"{what} returned {response.status} with {kind:.80}, not JSON") from None
