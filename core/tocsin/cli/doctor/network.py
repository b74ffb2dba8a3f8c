"""Examination of the network: names, proxies and certificates of all configured servers."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from yarl import URL

from tocsin.cli.doctor.findings import Area
from tocsin.clock import isoformat
from tocsin.fields import CERTIFICATE_FILES, PluginSettings
from tocsin.settings import Settings

PATIENCE = 5.0
"""Seconds to wait for a name, a proxy or a server."""
EXPIRY = timedelta(days=30)
"""Remaining validity below which a certificate causes a warning."""
_AT_ONCE = 16
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """A server that a table of the configuration names."""

    table: str
    url: URL
    has_proxy: bool

    @property
    def place(self) -> tuple[str, int]:
        """The host and the port."""
        return self.url.host or "", self.url.port or 0


def list_servers(tables: Iterable[tuple[str, PluginSettings]]) -> list[ConfiguredServer]:
    """Return the servers of these tables, each with its settings."""
    return [
        ConfiguredServer(table, URL(target), bool(getattr(settings, "proxy", None)))
        for table, settings in tables
        for target in sorted(set(settings.targets().values()))
        if "://" in target
    ]


async def examine_names(area: Area, servers: Sequence[ConfiguredServer]) -> None:
    """Resolve the name of every server that is not behind a proxy."""
    users = _list_names(servers)
    for name, error in await _find_unresolved(users):
        tables = ", ".join(dict.fromkeys(users[name]))
        area.fail(f"{name} ({tables}) cannot be resolved: {error}", "correct the name, or fix DNS")
    if not list(area):
        area.note(f"all server names can be resolved: {len(users)}")


async def find_unresolved_names(
    tables: Iterable[tuple[str, PluginSettings]],
) -> list[tuple[str, str]]:
    """Return the names of servers in these tables that cannot be resolved, with the reason."""
    return await _find_unresolved(_list_names(list_servers(tables)))


def _list_names(servers: Iterable[ConfiguredServer]) -> dict[str, list[str]]:
    """Return the names that this machine has to resolve, each with its tables."""
    users: dict[str, list[str]] = {}
    for server in servers:
        if not server.has_proxy and server.url.host:
            users.setdefault(server.url.host, []).append(server.table)
    return users


async def _find_unresolved(names: Collection[str]) -> list[tuple[str, str]]:
    errors = zip(names, await _all(map(_resolve, names)), strict=True)
    return [(name, error) for name, error in errors if error is not None]


async def _resolve(name: str) -> str | None:
    try:
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except TimeoutError:
        return f"no response within {PATIENCE:g} seconds"
    except OSError as error:
        return str(error.strerror or error)
    return None


async def examine_proxies(
    area: Area, settings: Settings, tables: Iterable[tuple[str, PluginSettings]]
) -> None:
    """Connect to the configured proxies, and find settings for proxies that have no effect."""
    proxies: dict[str, list[str]] = {}
    for table, configured in tables:
        if proxy := getattr(configured, "proxy", None):
            proxies.setdefault(_reveal(proxy), []).append(table)
    places = [(URL(proxy).host or "", URL(proxy).port or 0) for proxy in proxies]
    for used_by, place, error in zip(
        proxies.values(), places, await _all(map(_connect, places)), strict=True
    ):
        shown = f"the proxy {place[0]}:{place[1]} ({', '.join(used_by)})"
        if error is None:
            area.note(f"{shown} accepts connections")
        else:
            area.fail(f"{shown} is not reachable: {error}", "correct `proxy`, or start the proxy")
    given = [name for name in os.environ if name.lower() in _PROXY_VARIABLES]
    if given:
        area.warn(
            f"Tocsin ignores these environment variables: {', '.join(given)}",
            "to use a proxy, set `proxy` in the tables of plugins.toml that need it",
        )
    if settings.tls_terminated and not settings.trusted_proxies:
        area.warn(
            "TOCSIN_TLS_TERMINATED is set, but TOCSIN_TRUSTED_PROXIES is not, so all callers "
            "share the proxy's address and rate limits",
            "list the proxy's addresses in TOCSIN_TRUSTED_PROXIES",
        )
    if not list(area):
        area.note("no proxies are configured")


def _reveal(value: Any) -> str:
    return str(value.get_secret_value() if hasattr(value, "get_secret_value") else value)


async def _connect(place: tuple[str, int]) -> str | None:
    try:
        async with asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(*place)
    except TimeoutError:
        return f"no connection within {PATIENCE:g} seconds"
    except OSError as error:
        return str(error.strerror or error)
    writer.close()
    return None


async def examine_certificates(
    area: Area,
    settings: Settings,
    tables: Iterable[tuple[str, PluginSettings]],
    servers: Iterable[ConfiguredServer],
) -> None:
    """Find certificates that expire soon, in files and on servers."""
    now = datetime.now(UTC)
    for table, configured in tables:
        for name in CERTIFICATE_FILES[:2]:
            if path := getattr(configured, name, None):
                for certificate in _load(Path(path)):
                    _judge(area, f"{path} ({table}.{name})", certificate, now)
    presented = {
        server.place: server
        for server in servers
        if server.url.scheme == "https" and not server.has_proxy
    }
    if settings.public_url.startswith("https://"):
        ours = ConfiguredServer("TOCSIN_BASE_URL", URL(settings.public_url), has_proxy=False)
        presented[ours.place] = ours
    for server, found in zip(presented.values(), await _all(map(_fetch, presented)), strict=True):
        if found is not None:
            _judge(area, f"{server.url} ({server.table})", found, now)
    if not list(area):
        area.note("no certificates to check")


def _judge(area: Area, place: str, certificate: x509.Certificate, now: datetime) -> None:
    end = certificate.not_valid_after_utc
    if end < now:
        area.fail(f"{place}: the certificate expired on {isoformat(end)}", "renew the certificate")
    elif end < now + EXPIRY:
        area.warn(f"{place}: the certificate expires on {isoformat(end)}", "renew the certificate")
    else:
        area.note(f"{place}: the certificate expires on {isoformat(end)}")


def _load(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):  # `tocsin check` reports the error
        return []


async def _fetch(place: tuple[str, int]) -> x509.Certificate | None:
    """Return the certificate that a server presents, None if it is not reachable.

    Does not verify the certificate, because the caller looks for expired certificates.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(*place, ssl=context)
    except (OSError, TimeoutError, ssl.SSLError):
        return None
    tunnel: ssl.SSLObject = writer.get_extra_info("ssl_object")
    raw = tunnel.getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(raw) if raw else None


async def _all(work: Iterable[Any]) -> list[Any]:
    """Return the results of coroutines, and run a few at a time."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def run(each: Any) -> Any:
        async with limit:
            return await each

    return await asyncio.gather(*map(run, work))
