"""What an EVE alert record is about: addresses, names, files, vulnerabilities, techniques."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.files.records import child, children, named, number, text, texts

_CVE = re.compile(r"(?:CVE[_-])?(\d{4})[_-](\d{4,})", re.IGNORECASE)
_TECHNIQUE = re.compile(r"(T\d{4})(?:[._](\d{3}))?", re.IGNORECASE)
_HASH = re.compile(r"(?:[0-9a-fA-F]{32}){1,4}|[0-9a-fA-F]{40}")
_ADDRESS = re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}")
_HTTP_PORT = 80


def entities_of(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield everything that the record names; what cannot be one is left out."""
    for key in ("src_ip", "dest_ip"):
        yield from named(text(record, key) or "", EntityKind.IP)
    yield from _web(child(record, "http"))
    yield from _names(record)
    yield from _hashes(record)
    yield from _mail(record)
    for name in texts(child(child(record, "alert"), "metadata"), "cve"):
        if match := _CVE.fullmatch(name):
            yield Entity(EntityKind.CVE, f"CVE-{match[1]}-{match[2]}")


def techniques_of(record: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK techniques that the signature's metadata names."""
    for name in texts(child(child(record, "alert"), "metadata"), "mitre_technique_id"):
        if match := _TECHNIQUE.fullmatch(name):
            yield ".".join(part.upper() for part in match.groups() if part)


def _web(http: dict[str, Any]) -> Iterator[Entity]:
    hostname, url = text(http, "hostname"), text(http, "url")
    if hostname:
        yield from named(hostname, EntityKind.DOMAIN)
    if url and "://" in url.partition("?")[0]:  # as a client asks a proxy
        yield Entity(EntityKind.URL, url)
    elif url and url.startswith("/") and hostname:
        port = number(http, "http_port") or _HTTP_PORT
        place = hostname if port == _HTTP_PORT else f"{hostname}:{port}"
        yield Entity(EntityKind.URL, f"http://{place}{url}")


def _names(record: dict[str, Any]) -> Iterator[Entity]:
    dns = child(record, "dns")
    asked = chain.from_iterable(children(dns, key) for key in ("queries", "query"))
    for question in [dns, *asked]:
        if name := text(question, "rrname"):
            yield from named(name, EntityKind.DOMAIN)
    if name := text(child(record, "tls"), "sni"):
        yield from named(name, EntityKind.DOMAIN)


def _hashes(record: dict[str, Any]) -> Iterator[Entity]:
    for file in [*children(record, "files"), *children(record, "fileinfo")]:
        for key in ("sha256", "sha1", "md5"):
            if (value := text(file, key)) and _HASH.fullmatch(value):
                yield Entity(EntityKind.FILE_HASH, value)


def _mail(record: dict[str, Any]) -> Iterator[Entity]:
    smtp, email = child(record, "smtp"), child(record, "email")
    for fields, keys in ((smtp, ("mail_from", "rcpt_to")), (email, ("from", "to", "cc"))):
        for value in chain.from_iterable(texts(fields, key) for key in keys):
            if match := _ADDRESS.search(value):
                yield Entity(EntityKind.EMAIL, match[0])
