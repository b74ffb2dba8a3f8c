"""Servers that settings name, to which their secrets are sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, SecretStr
from yarl import URL

_TARGET_WORDS = frozenset(
    {"address", "authority", "cloud", "domain", "endpoint", "host", "hostname", "port", "region"}
    | {"server", "tls"}
)
_DEFAULT_PORTS = {"http": 80, "https": 443, "smtp": 25, "smtps": 465}


def find_targets(settings: BaseModel) -> dict[str, str]:
    """Return the servers of settings, by field.

    A URL is recognized by its value, and a host or port by the words of the field's name.
    """
    found: dict[str, str] = {}
    for name, value in settings:
        servers = dict(_find_servers(name, value))
        if not servers and value is not None and _TARGET_WORDS & set(name.split("_")):
            text = value.get_secret_value() if isinstance(value, SecretStr) else value
            servers = {name: str(text)}
        found |= servers
    return found


def find_server(text: str) -> str | None:
    """Return scheme, host and port of a URL; None if the text is no URL.

    The host is the one that the HTTP client connects to: two spellings of a Unicode name may look
    the same in lower case, and be different names.
    """
    try:
        url = URL(text.strip())
        host, port = url.raw_host, url.explicit_port or _DEFAULT_PORTS.get(url.scheme)
    except ValueError:  # no setting has such a URL: the validators of URLs refuse it
        return None
    if not url.scheme or not host:
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{shown}" + (f":{port}" if port else "")


def _find_servers(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the path and server of each URL in a setting."""
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, str):
        if server := find_server(value):
            yield name, server
    elif isinstance(value, BaseModel):
        for member, inner in value:
            yield from _find_servers(f"{name}.{member}", inner)
    elif isinstance(value, Mapping):
        for member, inner in value.items():
            yield from _find_servers(f"{name}.{member}", inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for number, inner in enumerate(value):
            yield from _find_servers(f"{name}.{number}", inner)
