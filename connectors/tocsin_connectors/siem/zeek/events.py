"""Mapping of records of any Zeek log to events.

https://docs.zeek.org/en/current/logs/index.html
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable, parse_field
from tocsin_connectors.siem.records import number, relate, text, texts, union
from tocsin_connectors.siem.zeek.mapping import find_entities, parse_time

_MAX_ENTITIES = 200
LOG_FIELDS = FieldTable(
    sources={
        FieldContent.ADDRESS: ("id.orig_h", "src", "tx_hosts"),
        FieldContent.EMAIL: ("mailfrom",),
    },
    targets={
        FieldContent.ADDRESS: ("id.resp_h", "dst", "rx_hosts"),
        FieldContent.EMAIL: ("rcptto",),
    },
    others={
        FieldContent.ADDRESS: ("assigned_addr", "client_addr", "server_addr", "x_originating_ip"),
        FieldContent.DOMAIN: ("query", "server_name", "san.dns"),
        FieldContent.NAME: ("answers", "client_fqdn"),
        FieldContent.HOST: ("hostname", "host_name", "server_nb_computer_name"),
        FieldContent.USER: ("username", "user"),
        FieldContent.EMAIL: ("from", "to", "cc", "reply_to"),
        FieldContent.FILE: ("filename",),
        FieldContent.FILE_HASH: ("md5", "sha1", "sha256"),
    },
)
"""Fields of conn, dns, http, ssl, files, smtp, ftp, ntlm, dhcp, kerberos and other logs."""
_EVENT_FIELDS = (
    *("uid", "fuid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "service"),
    *("note", "msg", "sub", "conn_state", "history", "orig_bytes", "resp_bytes", "query"),
    *("qtype_name", "rcode_name", "method", "host", "uri", "status_code", "user_agent"),
    *("referrer", "version", "cipher", "server_name", "subject", "issuer", "mime_type"),
    *("filename", "md5", "sha1", "sha256", "auth_success", "client", "server", "username"),
    *("hostname", "domainname", "command", "arg", "path", "action", "name", "helo"),
)
"""Fields that an analyst would look at."""
_DEFAULT_PORT = 80


def build_event(record: dict[str, Any]) -> SiemEvent:
    """Return the event of a record. Raises ValueError if it has no time."""
    at = parse_time(record)
    note = text(record, "note")
    found = LOG_FIELDS.find(record, _MAX_ENTITIES)
    web = tuple(_find_web_entities(record))
    notice = tuple(find_entities(record, note)) if note else ()
    return SiemEvent(
        external_id=None,  # the records of one connection share its `uid`
        occurred_at=at,
        summary=" ".join(_summarize(record, web).split()),
        entities=union([found.entities, web, notice]),
        relations=union([_find_relations(record, web, at)]),
        fields=_select_fields(record),
    )


def _select_fields(record: dict[str, Any]) -> dict[str, str | int]:
    """Return the interesting texts and whole numbers; the names of Zeek's fields have dots."""
    found = ((name, text(record, name) or number(record, name)) for name in _EVENT_FIELDS)
    return {name: value for name, value in found if value is not None}


def _find_web_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the requested site and page of a record of http.log."""
    host, uri = text(record, "host"), text(record, "uri")
    if host is None or uri is None:
        return
    yield from parse_field(FieldContent.NAME, host.rpartition(":")[0] or host)
    port = number(record, "id.resp_p") or _DEFAULT_PORT
    place = host if port == _DEFAULT_PORT or ":" in host else f"{host}:{port}"
    page = uri if "://" in uri.partition("?")[0] else f"http://{place}{uri}"
    yield from parse_field(FieldContent.URL, page)


def _summarize(record: dict[str, Any], web: tuple[Entity, ...]) -> str:
    ends = " to ".join(
        f"{text(record, f'id.{side}_h')}:{number(record, f'id.{side}_p')}"
        for side in ("orig", "resp")
        if text(record, f"id.{side}_h")
    )
    what = next(_describe(record, web))
    return f"{what} ({ends})" if ends else what


def _describe(record: dict[str, Any], web: tuple[Entity, ...]) -> Iterator[str]:
    """Yield descriptions of a record, the best first."""
    if note := text(record, "note"):
        yield f"{note}: {text(record, 'msg') or 'notice'}"
    if query := text(record, "query"):
        answers = ", ".join(texts(record, "answers"))
        yield f"dns: {query} resolves to {answers}" if answers else f"dns: query for {query}"
    for page in web:
        if page.kind is EntityKind.URL:
            yield f"http: {text(record, 'method') or 'request'} {page.value}"
    if name := text(record, "server_name"):
        yield f"tls: {name}"
    if file := text(record, "filename") or text(record, "mime_type"):
        yield f"file: {file}"
    proto = text(record, "service") or text(record, "proto") or text(record, "_path")
    sent, received = number(record, "orig_bytes"), number(record, "resp_bytes")
    if sent is not None and received is not None:
        yield f"{proto or 'traffic'}: {sent} bytes sent, {received} received"
    yield proto or "a record"


def _find_relations(
    record: dict[str, Any], web: tuple[Entity, ...], at: datetime
) -> Iterator[Relation]:
    """Yield connections, requests, name resolutions and mails."""
    client, server = (
        parse_field(FieldContent.ADDRESS, text(record, f"id.{side}_h") or "")
        for side in ("orig", "resp")
    )
    sites = [entity for entity in web if entity.kind is EntityKind.DOMAIN]
    pages = [entity for entity in web if entity.kind is EntityKind.URL]
    named = parse_field(FieldContent.DOMAIN, text(record, "server_name") or "")
    asked = parse_field(FieldContent.DOMAIN, text(record, "query") or "")
    answers = union(parse_field(FieldContent.NAME, value) for value in texts(record, "answers"))
    yield from relate(client, RelationType.CONNECTED_TO, [*server, *sites, *named], at)
    yield from relate(client, RelationType.RELATED_TO, asked, at)
    yield from relate(asked, RelationType.RESOLVES_TO, answers, at)
    yield from relate(pages, RelationType.PART_OF, sites, at)
    senders, recipients = (
        union(parse_field(FieldContent.EMAIL, value) for value in texts(record, member))
        for member in ("mailfrom", "rcptto")
    )
    yield from relate(senders, RelationType.SENT_TO, recipients, at)
