"""HTTP client for the JSON API of a SIEM."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import unquote, urlencode, urlsplit

import orjson
from pydantic import Field

from tocsin.errors import Broken, CredentialsRefused
from tocsin.fields import Duration, FileOnly, LocalPath, PluginSettings, ServerUrl
from tocsin.hookspecs import HttpResponse, Tools
from tocsin.json_codec import parse_json
from tocsin.model import Json
from tocsin.providers.responses import classify_response, parse_server_time

RENEWAL_MARGIN = timedelta(seconds=60)
"""A grant that ends sooner than this is renewed before it is used."""
MAX_BYTES = 16 * 1024 * 1024
"""The longest answer that is read."""
_SHOWN = 80


class ApiSettings(PluginSettings):
    """What is told to whatever asks an HTTP API; derive from your own base's settings first."""

    url: ServerUrl = Field(description="Where the API is, such as https://siem.example.com.")
    timeout: Duration = Field(
        default=timedelta(seconds=60),
        gt=timedelta(0),
        le=timedelta(minutes=10),
        description="How long one request may take.",
    )
    ca_file: LocalPath | None = Field(
        default=None,
        description="Certificates (PEM) of authorities to trust instead of the system's.",
    )
    client_certificate: LocalPath | None = Field(
        default=None, description="A certificate (PEM) to show to the server."
    )
    client_key: LocalPath | None = Field(
        default=None, description="Its private key, if it is not in the same file."
    )
    proxy: Annotated[str, FileOnly] | None = Field(
        default=None, description="An HTTP proxy to go through."
    )


@dataclass(frozen=True, slots=True)
class Grant:
    """What a sign-in brought: the field `Authorization`, and until when it is good."""

    authorization: str
    expires_at: datetime | None = None
    """None where the server did not say."""


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """What the server answered to a request that succeeded in full."""

    json: Json
    """None where there was no body."""
    status: int
    """From 200 to 299."""
    headers: Mapping[str, str]
    """Names match in any case."""
    server_time: datetime | None
    """What time the server had, to the second; None if it did not say."""


class Api:
    """Requests to one server, below its base address.

    `sign_in` is called when a grant is needed: at the first request, shortly before the grant ends,
    and once when a request is answered 401. It makes its own request with `signed=False`.
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
        """Return the answer to a GET; a member of the query that is None is left out."""
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
        """Return the answer, which was a success and JSON, or empty.

        `path` begins with a slash, or is an address of the same server, such as a link to the next
        page; the grant is sent nowhere else.

        Raises `TryLater` for what passes (a server that is away or busy, partial answers), with its
        delay; `CredentialsRefused` for 401 and 403; `Refused` for other mistakes of the request and
        for redirects; `Broken` for 5xx and for what is not JSON or too long.
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
        if response.status != 401:  # noqa: PLR2004 - the status says it best
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
        """Return another grant than the stale one; those who ask meanwhile get the same."""
        async with self._signing_in:
            if self._grant is stale or self._grant is None:
                assert self._sign_in is not None  # noqa: S101 - only then is there anything to renew
                self._grant = None
                self._grant = await self._sign_in()
            return self._grant

    def _judge(self, response: HttpResponse, what: str) -> ApiResponse:
        if failure := classify_response(response, what, self._tools.clock.now()):
            if isinstance(failure, CredentialsRefused):
                self._grant = None
            raise failure
        if response.truncated:
            raise Broken(f"{what} answered more than {MAX_BYTES:,} bytes")
        return ApiResponse(
            json=_parse_body(response, what),
            status=response.status,
            headers=response.headers,
            server_time=parse_server_time(response.headers),
        )

    def _url(self, path: str, query: Mapping[str, Any] | None) -> str:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        encoded = urlencode(given, doseq=True)
        url = path if "://" in path else f"{self._settings.url}{path}"
        if not _is_below(url, self._settings.url):
            raise Broken(f"{path[:_SHOWN]!r} leads to somewhere else than {self._settings.url}")
        return url + (f"?{encoded}" if encoded else "")


def _is_below(url: str, server: str) -> bool:
    """Whether an address is of this server, and does not climb out of its path."""
    try:
        return _parse_origin(url) == _parse_origin(server) and ".." not in unquote(
            urlsplit(url).path
        ).split("/")
    except ValueError:  # something after the port
        return False


def _parse_origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _parse_body(response: HttpResponse, what: str) -> Json:
    if not response.body.strip():
        return None
    try:
        return parse_json(response.body)
    except ValueError:
        kind = response.headers.get("Content-Type", "something without a type")
        raise Broken(f"{what} answered {response.status} with {kind:.80}, not JSON") from None
