"""Mapping of OCSF records of any class to events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.ocsf.entities import find_all_entities
from tocsin_connectors.siem.ocsf.mapping import parse_time
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

_AUTHENTICATION, _PROCESS_ACTIVITY = 3002, 1007
_LOGON = 1  # the value of activity_id
_ANSWER_TYPES = ("A", "AAAA", "CNAME")
_EVENT_FIELDS = (
    *("class_name", "activity_name", "severity", "status", "status_detail", "message"),
    *("disposition", "action", "finding_info.title", "src_endpoint.ip", "src_endpoint.port"),
    *("src_endpoint.hostname", "dst_endpoint.ip", "dst_endpoint.port", "dst_endpoint.hostname"),
    *("connection_info.protocol_name", "traffic.bytes_in", "traffic.bytes_out", "query.hostname"),
    *("query.type", "rcode", "http_request.http_method", "http_request.url.url_string"),
    *("http_request.user_agent", "http_response.code", "url.url_string", "user.name"),
    *("actor.user.name", "actor.process.name", "actor.process.cmd_line", "process.name"),
    *("process.cmd_line", "process.pid", "file.path", "file.name", "device.hostname", "device.ip"),
    *("email.from", "email.subject", "auth_protocol", "logon_type"),
)
"""Fields that an analyst would look at."""


def parse_event_time(record: dict[str, Any]) -> datetime:
    """Return the time of a record. Raises ValueError if it has none."""
    if moment := parse_time(record, "time"):
        return moment
    raise ValueError("time is missing or not a time")


def build_event(record: dict[str, Any]) -> SiemEvent:
    """Return the event of a record. Raises ValueError if it has no time."""
    at = parse_event_time(record)
    answers = _find_answers(record)
    own = text(child(record, "metadata"), "uid") or text(child(record, "finding_info"), "uid")
    return SiemEvent(
        external_id=own,
        occurred_at=at,
        summary=" ".join(_summarize(record).split()),
        entities=union([find_all_entities(record), answers]),
        relations=union([_find_relations(record, answers, at)]),
        fields=select_fields(record, _EVENT_FIELDS),
    )


def _summarize(record: dict[str, Any]) -> str:
    """Summarize an event: `Network Activity, Open: 192.0.2.7 to 198.51.100.9`."""
    kinds = [text(record, "class_name") or f"OCSF class {number(record, 'class_uid')}"]
    kinds += filter(None, [text(record, "activity_name")])
    title = text(child(record, "finding_info"), "title")
    summary = text(record, "message") or title or " to ".join(_list_endpoints(record))
    return ", ".join(kinds) + (f": {summary}" if summary else "")


def _list_endpoints(record: dict[str, Any]) -> Iterator[str]:
    for key in ("src_endpoint", "dst_endpoint"):
        endpoint = child(record, key)
        if name := text(endpoint, "ip") or text(endpoint, "hostname"):
            yield name


def _find_answers(record: dict[str, Any]) -> tuple[Entity, ...]:
    """Return the addresses and names in DNS answers."""
    answers = (
        answer for answer in children(record, "answers") if text(answer, "type") in _ANSWER_TYPES
    )
    return union(parse_host(text(answer, "rdata") or "", EntityKind.DOMAIN) for answer in answers)


def _find_relations(
    record: dict[str, Any], answers: tuple[Entity, ...], at: datetime
) -> Iterator[Relation]:
    source, target = (
        _find_endpoint(child(record, key)) for key in ("src_endpoint", "dst_endpoint")
    )
    device, query = _find_endpoint(child(record, "device")), child(record, "query")
    asked = list(parse_host(text(query, "hostname") or "", EntityKind.DOMAIN))
    yield from relate(source, RelationType.CONNECTED_TO, target, at)
    yield from relate(source or device, RelationType.RELATED_TO, asked, at)
    yield from relate(asked, RelationType.RESOLVES_TO, answers, at)
    kind, activity = number(record, "class_uid"), number(record, "activity_id")
    if kind == _AUTHENTICATION and activity == _LOGON and _is_successful(record):
        user = _find_named(child(record, "user"), EntityKind.USER)
        yield from relate(user, RelationType.LOGGED_ON_TO, target or device, at)
    if kind == _PROCESS_ACTIVITY:
        process = _find_named(child(record, "process"), EntityKind.PROCESS)
        parent = _find_named(child(child(record, "actor"), "process"), EntityKind.PROCESS)
        yield from relate(process, RelationType.EXECUTED_ON, device, at)
        yield from relate(parent, RelationType.STARTED, process, at)
    yield from _find_transfers(record, at)


def _find_transfers(record: dict[str, Any], at: datetime) -> Iterator[Relation]:
    """Yield downloads of files and senders of mails."""
    request = child(record, "http_request")
    url = text(child(request, "url"), "url_string") or text(child(record, "url"), "url_string")
    if url and (text(request, "http_method") or "GET").upper() == "GET":
        hashes = (text(digest, "value") for digest in children(child(record, "file"), "hashes"))
        files = [Entity(EntityKind.FILE_HASH, value) for value in hashes if value]
        page = [Entity(EntityKind.URL, url)]
        yield from relate(files, RelationType.DOWNLOADED_FROM, page, at)
    mail = child(record, "email")
    sender, receivers = (
        [Entity(EntityKind.EMAIL, value) for value in texts(mail, key) if "@" in value]
        for key in ("from", "to")
    )
    yield from relate(sender, RelationType.SENT_TO, receivers, at)


def _is_successful(record: dict[str, Any]) -> bool:
    """Return whether the activity succeeded; 2 means failure."""
    return number(record, "status_id") != 2  # noqa: PLR2004 - as the schema's dictionary has it


def _find_endpoint(endpoint: dict[str, Any]) -> list[Entity]:
    """Return the address of an endpoint, or else its name."""
    address = list(parse_host(text(endpoint, "ip") or "", EntityKind.IP))
    return address or list(parse_host(text(endpoint, "hostname") or "", EntityKind.HOST))


def _find_named(holder: dict[str, Any], kind: EntityKind) -> list[Entity]:
    name = text(holder, "name")
    return [Entity(kind, name)] if name else []
