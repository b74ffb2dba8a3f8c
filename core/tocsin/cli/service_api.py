"""API client for the commands that call a running service."""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from ipaddress import ip_network
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

import orjson
import typer

from tocsin.cli.output import print_text
from tocsin.cli.responses import ResponseMembers, read_response
from tocsin.errors import OperatorError, PluginFailure, TryLater
from tocsin.hookspecs import HttpClient
from tocsin.settings import load_settings

if TYPE_CHECKING:
    from yarl import URL

    from tocsin.net import GuardedClient

ApiUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="TOCSIN_URL",
        help="Base URL of Tocsin. Default: the base URL in the settings.",
    ),
]
AdminToken = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="TOCSIN_ADMIN_TOKEN",
        help="Admin token. Prefer the environment variable, because other users on this machine "
        "can see command-line arguments.",
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar="TOCSIN_API_KEY",
        help="API key. Prefer the environment variable, because other users on this machine can "
        "see command-line arguments.",
    ),
]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of rows.")]
Search = Annotated[
    str | None,
    typer.Option(
        help="Only entries with this text in the name, description, ID, creator or scopes."
    ),
]

NULL = orjson.Fragment(b"null")
"""Sends null as a member of a body; members that are None are not sent."""
T = TypeVar("T")

_TIMEOUT = timedelta(seconds=30)
_LARGEST_ANSWER = 16 * 1024 * 1024
_LARGEST_PAGE = 200
_BEARER_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 section 2.1
_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


class ServiceApi:
    """Calls the API of a running service."""

    def __init__(self, client: HttpClient, url: str, credential: Mapping[str, str]) -> None:
        self._client = client
        self._url = url
        self._credential = credential

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> ResponseMembers:
        """Return the members of the response; parameters and members that are None are not sent.

        Errors show the options of the command in place of the request fields in `options`.
        Raises OperatorError with the reason of a failure. Errors never contain the credential.
        """
        try:
            response = await self._client.request(
                method,
                f"{self._url}{path}?{urlencode(_drop_none(query or {}))}",
                headers=self._headers(method),
                content=None if body is None else orjson.dumps(_drop_none(body)),
                timeout=_TIMEOUT,
                limit=_LARGEST_ANSWER,
            )
        except PluginFailure as error:
            raise OperatorError(_describe_failure(method, error)) from None
        return read_response(response, options)

    async def collect(
        self, path: str, member: str, *, limit: int, **query: str | None
    ) -> list[dict[str, Any]]:
        """Return up to `limit` records of a list, from as many pages as needed."""
        records: list[dict[str, Any]] = []
        cursor = None
        while True:
            size = min(limit - len(records), _LARGEST_PAGE)
            page = await self.call("GET", path, query=query | {"limit": size, "cursor": cursor})
            records += page[member]
            cursor = page["next_cursor"]
            if cursor is None or len(records) >= limit:
                break
        if cursor is not None:
            least = "at least " if page.get("total_relation") == "gte" else ""
            print_text(
                f"showing {len(records)} of {least}{page['total']}; use --limit to see more",
                file=sys.stderr,
            )
        return records

    def _headers(self, method: str) -> dict[str, str]:
        headers = {**self._credential, "Content-Type": "application/json"}
        return headers | ({"Idempotency-Key": secrets.token_hex(16)} if method == "POST" else {})


def run_on_api(url: str | None, token: str | None, work: Callable[[ServiceApi], Awaitable[T]]) -> T:
    """Return the result of `work` as an admin.

    Raises OperatorError if the token cannot be sent to the URL.
    """
    checked = _check(
        token,
        missing="no admin token: set TOCSIN_ADMIN_TOKEN, or use --token; "
        "`tocsin admin token` prints one",
        invalid="TOCSIN_ADMIN_TOKEN or --token: found characters that a token cannot contain; "
        "use the exact output of `tocsin admin token`",
    )
    return _run(url, {"Authorization": f"Bearer {checked}"}, work)


def run_with_key(
    url: str | None,
    key: str | None,
    work: Callable[[ServiceApi], Awaitable[T]],
    *,
    scope: str = "incidents:read",
) -> T:
    """Return the result of `work` with an API key that has a scope.

    Raises OperatorError as `run_on_api` does.
    """
    checked = _check(
        key,
        missing="no API key: set TOCSIN_API_KEY, or use --api-key; "
        f"`tocsin keys create NAME --scope {scope}` prints one",
        invalid="TOCSIN_API_KEY or --api-key: found characters that a key cannot contain; "
        "use the exact output of `tocsin keys create`",
    )
    return _run(url, {"X-API-Key": checked}, work)


def _run(
    url: str | None, credential: Mapping[str, str], work: Callable[[ServiceApi], Awaitable[T]]
) -> T:
    base = _parse_base_url(url or load_settings().public_url)

    async def run() -> T:
        client = _open_client(base)
        try:
            return await work(ServiceApi(client, str(base).rstrip("/"), credential))
        finally:
            await client.close()

    return asyncio.run(run())


def admin_path(*parts: str) -> str:
    """Return the path below `/api/admin/`, each part escaped."""
    return "/".join(["/api/admin", *(quote(part, safe="") for part in parts)])


def _parse_base_url(text: str) -> URL:
    from tocsin.net import parse_url

    try:
        url = parse_url(text)
    except ValueError as error:
        raise _invalid_url(str(error)) from None
    if url.raw_query_string:
        raise _invalid_url("found a query (?...) in the URL")
    return url


def _invalid_url(reason: str) -> OperatorError:
    return OperatorError(
        f"--url (or TOCSIN_URL, TOCSIN_BASE_URL): {reason}; "
        "use a base URL such as https://tocsin.example.org"
    )


def _check(credential: str | None, *, missing: str, invalid: str) -> str:
    """Return a credential that fits into a header; raises OperatorError with one of the reasons."""
    if not credential:
        raise OperatorError(missing)
    if not _BEARER_TOKEN.fullmatch(credential.strip()):
        raise OperatorError(invalid)
    return credential.strip()


def _open_client(url: URL) -> GuardedClient:
    """Return a client for this host; over plain HTTP it connects only to loopback addresses."""
    from tocsin.net import literal_address, open_client

    host = url.raw_host or ""
    if url.scheme == "https":
        return open_client(allow_hosts=[host])
    address = literal_address(host)
    if host != "localhost" and not (address and address.is_loopback):
        raise OperatorError(
            f"{url.host} is not this machine, so http:// would send the credential unencrypted; "
            "use an https:// address with --url or TOCSIN_URL"
        )
    return open_client(allow_networks=_LOOPBACK)


def _drop_none(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _describe_failure(method: str, error: PluginFailure) -> str:
    advice = (
        "check that Tocsin is running at this address, or set another address with --url or "
        "TOCSIN_URL"
    )
    if method != "GET" and isinstance(error, TryLater):
        advice += (
            "; Tocsin might have processed the request, so check the result before you run the "
            "command again"
        )
    return f"{error}; {advice}"
