"""Addresses of PostgreSQL servers: the hosts, credentials and parameters of a database URL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from sqlalchemy import URL

from tocsin.errors import ConfigurationError, ConfigurationProblem
from tocsin.validation import suggest_nearest

DATABASE_URL = "TOCSIN_DATABASE_URL"
SESSION_URL = "TOCSIN_DATABASE_SESSION_URL"
READ_URL = "TOCSIN_DATABASE_READ_URL"
DEFAULT_PORT = 5432
"""The port of PostgreSQL servers."""
_CONNECT_SECONDS = 10.0
_HOST_SECONDS = 3.0  # where another host can be tried instead
_MAX_CACHED = 10_000
# With the credentials of SQLAlchemy's `make_url`: a password ends at the first `@`
_URL = re.compile(r"(\w[\w+]*://)((?:[^:/]*(?::[^@]*)?@)?)([^/?]*)([^?]*)\??(.*)", re.DOTALL)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::([0-9]*))?")
# Names of libpq (section 34.1.2 of PostgreSQL's manual) for the names of asyncpg
_ALIASES = {"ssl": "sslmode", "timeout": "connect_timeout"}
_VERIFIED = {"require", "verify-ca", "verify-full"}
_NOT_SENT = {"host", "port", "connect_timeout", "statement_cache_size", "target_session_attrs"}
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a database is, and how to connect to it."""

    hosts: Sequence[tuple[str, int]]
    """Host names or Unix socket directories, with ports; empty for the driver's default."""
    database: str
    user: str | None
    password: str | None = field(repr=False)
    target: str
    """`target_session_attrs` of libpq."""
    connect_seconds: float
    """How long to wait for each host."""
    cached_statements: int | None
    """How many prepared statements a connection keeps; None for the driver's default."""
    tls: Mapping[str, str]
    """TLS parameters, by their names in libpq."""

    @property
    def bare_url(self) -> URL:
        """The address without parameters, for messages, which leave out its password."""
        port = self.hosts[0][1] if len(self.hosts) == 1 else None
        hosts = ",".join(host for host, _ in self.hosts)
        return URL.create(
            "postgresql+asyncpg", self.user, self.password, hosts, port, self.database
        )

    @property
    def dsn(self) -> str:
        """The parameters of TLS as a URL without hosts, for the driver."""
        return "postgresql://?" + "&".join(
            f"{name}={quote(value, safe='/')}" for name, value in self.tls.items()
        )


def split_hosts(text: str, variable: str = DATABASE_URL) -> str:
    """Return the URL with several hosts, or with a Unix socket, moved to the parameter `host`.

    libpq takes them before the path, where SQLAlchemy takes one host. Other text is returned as it
    is. Raises ConfigurationError for a second `@`: parts of a password would be taken for a host.
    """
    if (match := _URL.fullmatch(text)) is None:
        return text
    scheme, user, hosts, path, query = match.groups()
    if scheme.startswith("postgres") and "@" in hosts + path + query:
        what, expected = (
            "an @ follows the host",
            "write %40 for every @ except the one before the host",
        )
        raise ConfigurationError([ConfigurationProblem("environment", variable, what, expected)])
    if "," not in hosts and "%2f" not in hosts.lower():
        return text
    moved = f"host={quote(unquote(hosts), safe='')}"
    return f"{scheme}{user}{path}?{'&'.join(filter(None, (query, moved)))}"


def read_address(url: URL, variable: str = DATABASE_URL) -> ServerAddress:
    """Return the address in a PostgreSQL URL; raises ConfigurationError that lists all problems.

    Among several hosts, the one that takes writes is meant by default; in the read URL, one that is
    a replica.
    """
    given = {
        _ALIASES.get(name, name): value if isinstance(value, str) else ",".join(value)
        for name, value in url.query.items()
    }
    problems = [*_check_names(url), *_check_values(given)]
    target, is_read = given.get("target_session_attrs"), variable == READ_URL
    if not is_read and target in {"read-only", "standby", "prefer-standby"}:
        what = f"target_session_attrs: found {target!r}, where nothing can be stored"
        problems.append((what, "use read-write, primary or any"))
    if url.host and "host" in given:
        problems.append(("host: set twice", "list all hosts before the path"))
    hosts, found = _read_hosts(url, given)
    problems += found
    if problems:
        raise ConfigurationError(
            [ConfigurationProblem("environment", variable, *problem) for problem in problems]
        )
    several = len(hosts) > 1
    default = ("standby" if is_read else "read-write") if several else "any"
    seconds = _HOST_SECONDS if several else _CONNECT_SECONDS
    cached = given.get("statement_cache_size")
    return ServerAddress(
        hosts=hosts,
        database=url.database or url.username or "",
        user=url.username,
        password=None if url.password is None else str(url.password),
        target=given.get("target_session_attrs", default),
        connect_seconds=float(given.get("connect_timeout", seconds)),
        cached_statements=None if cached is None else int(cached),
        tls={name: value for name, value in given.items() if name not in _NOT_SENT},
    )


def _check_names(url: URL) -> Iterator[tuple[str, str]]:
    for name, value in url.query.items():
        known = _ALIASES.get(name, name)
        if known not in _VALUES:
            hint = suggest_nearest(name, list(_VALUES)) or f"; supported: {', '.join(_VALUES)}"
            yield f"unknown parameter {name}", f"remove it{hint}"
        elif (not isinstance(value, str) and known != "host") or (
            name != known and known in url.query
        ):
            yield f"{known}: set twice", "set it once"


def _check_values(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        check = _VALUES.get(name)
        if check is not None and (expected := check(value)) is not None:
            yield f"{name}: found {value!r}", expected
    mode = given.get("sslmode", "prefer")
    for name in ("sslrootcert", "sslcrl"):
        if name in given and mode not in _VERIFIED:
            yield f"{name}: not used with sslmode={mode}", "add sslmode=verify-full"
    if "sslkey" in given and "sslcert" not in given:
        yield "sslkey: set without its certificate", "add sslcert"


def _read_hosts(
    url: URL, given: Mapping[str, str]
) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """Return the hosts with their ports, and problems.

    Problems do not repeat hosts: with an unescaped password, its parts could be among them.
    """
    if url.host:
        return [(url.host, url.port or DEFAULT_PORT)], []
    texts = given["host"].split(",") if given.get("host") else []
    ports = given["port"].split(",") if given.get("port") else []
    problems: list[tuple[str, str]] = []
    if len(ports) > 1 and len(ports) != len(texts):
        expected = "use one port for all hosts, or one for each host"
        problems.append((f"port: found {len(ports)} ports for {len(texts)} hosts", expected))
        ports = []
    hosts = []
    for position, text in enumerate(texts):
        name, own = _split_port(text)
        port = own or (ports[position % len(ports)] if ports else str(DEFAULT_PORT))
        if not name or not _is_port(port):
            expected = "write each as name, name:port, [IPv6 address]:port or /directory"
            problems.append((f"host {position + 1} of {len(texts)}: not valid", expected))
        else:
            hosts.append((name, int(port)))
    return hosts, problems


def _split_port(text: str) -> tuple[str, str]:
    """Return a host and its port, which may be empty; the host is empty where it is not valid."""
    if text.startswith("/"):
        return text, ""
    match = _HOST.fullmatch(text)
    return ("", "") if match is None else (match[1].strip("[]"), match[2] or "")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text[:6]) <= 65535  # noqa: PLR2004


def _choose(*values: str) -> Callable[[str], str | None]:
    return lambda text: None if text in values else f"use {', '.join(values[:-1])} or {values[-1]}"


def _check_file(text: str) -> str | None:
    try:
        with Path(text).open("rb"):
            return None
    except OSError as error:
        return f"use the path of a readable file ({error.strerror})"


def _check_seconds(text: str) -> str | None:
    return None if re.fullmatch(r"[1-9][0-9]{0,2}", text) else "use seconds from 1 to 999"


def _check_count(text: str) -> str | None:
    is_count = re.fullmatch(r"[0-9]{1,5}", text) and int(text) <= _MAX_CACHED
    return None if is_count else f"use a number from 0 to {_MAX_CACHED}"


def _check_ports(text: str) -> str | None:
    return None if all(map(_is_port, text.split(","))) else "use numbers from 1 to 65535"


_VALUES: Mapping[str, Callable[[str], str | None]] = {
    "host": lambda _: None,
    "port": _check_ports,
    "target_session_attrs": _choose(
        "any", "read-write", "primary", "read-only", "standby", "prefer-standby"
    ),
    "connect_timeout": _check_seconds,
    "statement_cache_size": _check_count,
    "sslmode": _choose("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    **dict.fromkeys(_FILES, _check_file),
    "ssl_min_protocol_version": _choose("TLSv1.2", "TLSv1.3"),
    "ssl_max_protocol_version": _choose("TLSv1.2", "TLSv1.3"),
}
