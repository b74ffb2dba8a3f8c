"""Mapping of EVE records of any type to events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.records import (
    child,
    children,
    number,
    parse_host,
    relate,
    select_fields,
    text,
    texts,
    union,
)
from tocsin_connectors.siem.suricata.mapping import (
    find_endpoints,
    find_entities,
    find_hashes,
    find_mail_addresses,
    find_web_entities,
    parse_timestamp,
)

_ANSWER_TYPES = ("A", "AAAA", "CNAME")
_EVENT_FIELDS = (
    *("event_type", "src_ip", "src_port", "dest_ip", "dest_port", "proto", "app_proto"),
    *("direction", "in_iface", "flow_id", "community_id", "alert.signature"),
    *("alert.signature_id", "alert.category", "alert.severity", "alert.action", "dns.type"),
    *("dns.rrname", "dns.rrtype", "dns.rcode", "dns.rdata", "http.http_method", "http.hostname"),
    *("http.url", "http.status", "http.http_user_agent", "http.http_refer"),
    *("http.http_content_type", "http.length", "tls.sni", "tls.subject", "tls.issuerdn"),
    *("tls.version", "tls.fingerprint", "tls.notbefore", "tls.notafter", "tls.ja3.hash"),
    *("ssh.client.software_version", "ssh.server.software_version", "fileinfo.filename"),
    *("fileinfo.magic", "fileinfo.state", "fileinfo.size", "fileinfo.sha256", "fileinfo.sha1"),
    *("fileinfo.md5", "flow.start", "flow.end", "flow.age", "flow.state", "flow.reason"),
    *("flow.pkts_toserver", "flow.pkts_toclient", "flow.bytes_toserver", "flow.bytes_toclient"),
    *("smtp.helo", "smtp.mail_from", "email.from", "email.subject"),
)
"""Fields that an analyst would look at."""


def build_event(record: dict[str, Any]) -> SiemEvent:
    """Return the event of a record. Raises ValueError if it has no time."""
    at = parse_timestamp(record)
    names = _find_answers(child(record, "dns"))
    return SiemEvent(
        external_id=None,  # EVE records have no ID: records of one flow share its number
        occurred_at=at,
        summary=" ".join(_summarize(record).split()),
        entities=union([find_entities(record), names]),
        relations=union([_find_relations(record, names, at)]),
        fields=select_fields(record, _EVENT_FIELDS),
    )


def _summarize(record: dict[str, Any]) -> str:
    source, target = _format_endpoint(record, "src"), _format_endpoint(record, "dest")
    kind = text(record, "event_type") or "record"
    return (
        f"{kind}: {_describe(record) or text(record, 'proto') or 'traffic'} ({source} to {target})"
    )


def _describe(record: dict[str, Any]) -> str | None:
    """Describe the content of the record beyond its endpoints."""
    say = _DESCRIPTIONS.get(text(record, "event_type") or "")
    return say and say(record)


def _describe_dns(record: dict[str, Any]) -> str:
    dns = child(record, "dns")
    answers = ", ".join(entity.value for entity in _find_answers(dns))
    name = next((name.value for name in _find_questions(dns)), "a name")
    return f"{name} resolves to {answers}" if answers else f"query for {name}"


def _describe_http(record: dict[str, Any]) -> str:
    http = child(record, "http")
    page = next(
        (entity.value for entity in find_web_entities(http) if entity.kind is EntityKind.URL), None
    )
    status = number(http, "status")
    parts = [text(http, "http_method"), page or text(http, "hostname")]
    return " ".join([*filter(None, parts), *([f"returned {status}"] if status else [])])


def _describe_flow(record: dict[str, Any]) -> str:
    flow = child(record, "flow")
    sent, received = (number(flow, f"bytes_to{side}") or 0 for side in ("server", "client"))
    return f"{text(record, 'proto') or 'traffic'}, {sent} bytes sent, {received} received"


_DESCRIPTIONS: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "alert": lambda record: text(child(record, "alert"), "signature"),
    "dns": _describe_dns,
    "http": _describe_http,
    "tls": lambda record: text(child(record, "tls"), "sni"),
    "fileinfo": lambda record: text(child(record, "fileinfo"), "filename"),
    "flow": _describe_flow,
}
"""Descriptions by event type."""


def _format_endpoint(record: dict[str, Any], side: str) -> str:
    port = number(record, f"{side}_port")
    name = text(record, f"{side}_ip") or "unknown"
    return name if port is None else f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _find_questions(dns: dict[str, Any]) -> Iterator[Entity]:
    questions = [*children(dns, "queries"), *children(dns, "query"), *children(dns, "answers")]
    for question in [dns, *questions]:
        yield from parse_host(text(question, "rrname") or "", EntityKind.DOMAIN)


def _find_answers(dns: dict[str, Any]) -> tuple[Entity, ...]:
    """Return the addresses and names in DNS answers."""
    values = [
        text(answer, "rdata")
        for answer in _list_answers(dns)
        if text(answer, "rrtype") in _ANSWER_TYPES
    ]
    for kind in _ANSWER_TYPES:
        values += texts(child(dns, "grouped"), kind)
    return union(parse_host(value, EntityKind.DOMAIN) for value in values if value)


def _list_answers(dns: dict[str, Any]) -> list[dict[str, Any]]:
    return [dns, *children(dns, "answers")]


def _find_relations(
    record: dict[str, Any], answers: tuple[Entity, ...], at: datetime
) -> Iterator[Relation]:
    client, server = find_endpoints(record)
    dns, http = child(record, "dns"), child(record, "http")
    asked, web = list(dict.fromkeys(_find_questions(dns)))[:1], list(find_web_entities(http))
    sites = [entity for entity in web if entity.kind is EntityKind.DOMAIN]
    pages = [entity for entity in web if entity.kind is EntityKind.URL]
    spoken = [*sites, *parse_host(text(child(record, "tls"), "sni") or "", EntityKind.DOMAIN)]
    if text(record, "event_type") != "fileinfo":  # its endpoints are those of the file
        yield from relate(client, RelationType.CONNECTED_TO, [*server, *spoken], at)
        yield from relate(client, RelationType.RELATED_TO, asked, at)
    yield from relate(asked, RelationType.RESOLVES_TO, answers, at)
    yield from relate(pages, RelationType.PART_OF, sites, at)
    yield from _find_transfers(record, pages or sites or server, at)
    for sender, receivers in _list_mails(record):
        yield from relate(sender, RelationType.SENT_TO, receivers, at)


def _find_transfers(
    record: dict[str, Any], places: list[Entity], at: datetime
) -> Iterator[Relation]:
    """Yield the origins or targets of files, by HTTP method."""
    method = (text(child(record, "http"), "http_method") or "").upper()
    kinds = {"GET": RelationType.DOWNLOADED_FROM}
    kinds |= dict.fromkeys(("POST", "PUT"), RelationType.SENT_TO)
    files = [*children(record, "fileinfo"), *children(record, "files")]
    if method in kinds:
        for file in files:
            yield from relate(find_hashes(file), kinds[method], places, at)


def _list_mails(record: dict[str, Any]) -> Iterator[tuple[list[Entity], list[Entity]]]:
    for key, sender, receivers in (("smtp", "mail_from", "rcpt_to"), ("email", "from", "to")):
        mail = child(record, key)
        yield (
            list(find_mail_addresses(mail, (sender,))),
            list(find_mail_addresses(mail, (receivers,))),
        )
