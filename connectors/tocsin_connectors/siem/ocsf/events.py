"""From an OCSF record of any class to the event that it tells of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.ocsf.entities import named_anywhere
from tocsin_connectors.siem.ocsf.findings import time_of
from tocsin_connectors.siem.records import (
    child,
    children,
    chosen,
    named,
    number,
    text,
    texts,
    union,
)
from tocsin_connectors.siem.relating import related

_AUTHENTICATION, _PROCESS_ACTIVITY = 3002, 1007
_LOGON = 1  # the value of activity_id
_ANSWERS = ("A", "AAAA", "CNAME")
_FIELDS = (
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
"""What an analyst would look at."""


def occurred_at(record: dict[str, Any]) -> datetime:
    """Return when what a record tells of was; ValueError where it does not say."""
    if moment := time_of(record, "time"):
        return moment
    raise ValueError("time is missing or not a time")


def event_of(record: dict[str, Any]) -> SiemEvent:
    """Return what a record tells of; ValueError where it does not say when that was."""
    at = occurred_at(record)
    answers = _answers(record)
    own = text(child(record, "metadata"), "uid") or text(child(record, "finding_info"), "uid")
    return SiemEvent(
        external_id=own,
        occurred_at=at,
        summary=" ".join(_summary(record).split()),
        entities=union([named_anywhere(record), answers]),
        relations=union([_relations(record, answers, at)]),
        fields=chosen(record, _FIELDS),
    )


def _summary(record: dict[str, Any]) -> str:
    """Say what happened: `Network Activity, Open: 192.0.2.7 to 198.51.100.9`."""
    kinds = [text(record, "class_name") or f"OCSF class {number(record, 'class_uid')}"]
    kinds += filter(None, [text(record, "activity_name")])
    title = text(child(record, "finding_info"), "title")
    said = text(record, "message") or title or " to ".join(_ends(record))
    return ", ".join(kinds) + (f": {said}" if said else "")


def _ends(record: dict[str, Any]) -> Iterator[str]:
    for key in ("src_endpoint", "dst_endpoint"):
        endpoint = child(record, key)
        if name := text(endpoint, "ip") or text(endpoint, "hostname"):
            yield name


def _answers(record: dict[str, Any]) -> tuple[Entity, ...]:
    """Return the addresses and names that a name was said to stand for."""
    answers = (it for it in children(record, "answers") if text(it, "type") in _ANSWERS)
    return union(named(text(it, "rdata") or "", EntityKind.DOMAIN) for it in answers)


def _relations(
    record: dict[str, Any], answers: tuple[Entity, ...], at: datetime
) -> Iterator[Relation]:
    source, target = (_endpoint(child(record, key)) for key in ("src_endpoint", "dst_endpoint"))
    device, query = _endpoint(child(record, "device")), child(record, "query")
    asked = list(named(text(query, "hostname") or "", EntityKind.DOMAIN))
    yield from related(source, RelationType.CONNECTED_TO, target, at)
    yield from related(source or device, RelationType.RELATED_TO, asked, at)
    yield from related(asked, RelationType.RESOLVES_TO, answers, at)
    kind, activity = number(record, "class_uid"), number(record, "activity_id")
    if kind == _AUTHENTICATION and activity == _LOGON and _succeeded(record):
        user = _names(child(record, "user"), EntityKind.USER)
        yield from related(user, RelationType.LOGGED_ON_TO, target or device, at)
    if kind == _PROCESS_ACTIVITY:
        process = _names(child(record, "process"), EntityKind.PROCESS)
        parent = _names(child(child(record, "actor"), "process"), EntityKind.PROCESS)
        yield from related(process, RelationType.EXECUTED_ON, device, at)
        yield from related(parent, RelationType.STARTED, process, at)
    yield from _transfers(record, at)


def _transfers(record: dict[str, Any], at: datetime) -> Iterator[Relation]:
    """Yield where a file came from, and who wrote to whom."""
    request = child(record, "http_request")
    url = text(child(request, "url"), "url_string") or text(child(record, "url"), "url_string")
    if url and (text(request, "http_method") or "GET").upper() == "GET":
        hashes = (text(it, "value") for it in children(child(record, "file"), "hashes"))
        files = [Entity(EntityKind.FILE_HASH, value) for value in hashes if value]
        page = [Entity(EntityKind.URL, url)]
        yield from related(files, RelationType.DOWNLOADED_FROM, page, at)
    mail = child(record, "email")
    sender, receivers = (
        [Entity(EntityKind.EMAIL, value) for value in texts(mail, key) if "@" in value]
        for key in ("from", "to")
    )
    yield from related(sender, RelationType.SENT_TO, receivers, at)


def _succeeded(record: dict[str, Any]) -> bool:
    """Return whether something was done, and not merely tried; 2 stands for a failure."""
    return number(record, "status_id") != 2  # noqa: PLR2004 - as the schema's dictionary has it


def _endpoint(endpoint: dict[str, Any]) -> list[Entity]:
    """Return what an endpoint is called: its address, or else its name."""
    address = list(named(text(endpoint, "ip") or "", EntityKind.IP))
    return address or list(named(text(endpoint, "hostname") or "", EntityKind.HOST))


def _names(holder: dict[str, Any], kind: EntityKind) -> list[Entity]:
    name = text(holder, "name")
    return [Entity(kind, name)] if name else []
