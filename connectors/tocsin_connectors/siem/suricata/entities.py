"""What an EVE alert record is about: addresses, names, files, vulnerabilities, techniques."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.records import child, children, number, parse_host, text, texts

_CVE = re.compile(r"(?:CVE[_-])?(\d{4})[_-](\d{4,})", re.IGNORECASE)
_TECHNIQUE = re.compile(r"(T\d{4})(?:[._](\d{3}))?", re.IGNORECASE)
_HASH = re.compile(r"(?:[0-9a-fA-F]{32}){1,4}|[0-9a-fA-F]{40}")
_MAIL_ADDRESS = re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}")
_HTTP_PORT = 80


def find_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield everything that the record names; what cannot be one is left out."""
    for key in ("src_ip", "dest_ip"):
        yield from parse_host(text(record, key) or "", EntityKind.IP)
    for key in (key for key in _FINDERS if key in record):
        for part in children(record, key):
            yield from _FINDERS[key](part)
    for name in texts(child(child(record, "alert"), "metadata"), "cve"):
        if match := _CVE.fullmatch(name):
            yield Entity(EntityKind.CVE, f"CVE-{match[1]}-{match[2]}")


def find_techniques(record: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK techniques that the signature's metadata names."""
    for name in texts(child(child(record, "alert"), "metadata"), "mitre_technique_id"):
        if match := _TECHNIQUE.fullmatch(name):
            yield ".".join(part.upper() for part in match.groups() if part)


def find_web_entities(http: dict[str, Any]) -> Iterator[Entity]:
    """Yield the site that was asked, and the page."""
    hostname, url = text(http, "hostname"), text(http, "url")
    if hostname:
        yield from parse_host(hostname, EntityKind.DOMAIN)
    if url and "://" in url.partition("?")[0]:  # as a client asks a proxy
        yield Entity(EntityKind.URL, url)
    elif url and url.startswith("/") and hostname:
        port = number(http, "http_port") or _HTTP_PORT
        place = hostname if port == _HTTP_PORT else f"{hostname}:{port}"
        yield Entity(EntityKind.URL, f"http://{place}{url}")


def _find_names(dns: dict[str, Any]) -> Iterator[Entity]:
    asked = chain.from_iterable(children(dns, key) for key in ("queries", "query"))
    for question in [dns, *asked]:
        if name := text(question, "rrname"):
            yield from parse_host(name, EntityKind.DOMAIN)


def _find_server(handshake: dict[str, Any]) -> Iterator[Entity]:
    if name := text(handshake, "sni"):
        yield from parse_host(name, EntityKind.DOMAIN)


def find_hashes(file: dict[str, Any]) -> Iterator[Entity]:
    """Yield the digests of a file."""
    for key in ("sha256", "sha1", "md5"):
        if (value := text(file, key)) and _HASH.fullmatch(value):
            yield Entity(EntityKind.FILE_HASH, value)


def find_mail_addresses(message: dict[str, Any]) -> Iterator[Entity]:
    """Yield the addresses of a message's sender and receivers."""
    for key in ("mail_from", "rcpt_to", "from", "to", "cc"):
        for value in texts(message, key):
            if match := _MAIL_ADDRESS.search(value):
                yield Entity(EntityKind.EMAIL, match[0])


_FINDERS: dict[str, Callable[[dict[str, Any]], Iterator[Entity]]] = {
    "http": find_web_entities,
    "dns": _find_names,
    "tls": _find_server,
    "quic": _find_server,
    "files": find_hashes,
    "fileinfo": find_hashes,
    "smtp": find_mail_addresses,
    "email": find_mail_addresses,
}
"""By the member of a record that speaks of them: what reads its entities."""
