"""Mapping of records of any source type to events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.records import (
    describe_value,
    parse_entities,
    relate,
    text,
    texts,
    union,
)
from tocsin_connectors.siem.splunk.mapping import find_entities, first_text, parse_time
from tocsin_connectors.siem.splunk.spl import ORIGIN

_EVENT_FIELDS = (
    *("index", "sourcetype", "source", "host", "eventtype", "tag", "action", "signature", "app"),
    *("user", "src_user", "src", "src_port", "dest", "dest_port", "dvc", "transport", "url"),
    *("http_method", "http_user_agent", "status", "query", "answer", "process", "process_name"),
    *("parent_process_name", "file_name", "file_path", "file_hash", "subject", "vendor_product"),
)
"""Fields that an analyst would look at."""
_MAX_RAW_LENGTH = 1_000


def build_event(record: dict[str, Any]) -> SiemEvent:
    """Return the event of a record. Raises ValueError if it has no time."""
    value = first_text(record, "_time")
    if value is None:
        raise ValueError(f"_time is {describe_value(record.get('_time'))}")
    at = parse_time(value)
    return SiemEvent(
        external_id=text(record, ORIGIN),
        occurred_at=at,
        summary=" ".join(_summarize(record).split()),
        entities=union([find_entities(record)]),
        relations=union([_find_relations(record, at)]),
        fields=_select_fields(record),
    )


def _select_fields(record: dict[str, Any]) -> dict[str, str]:
    shown = {name: ", ".join(texts(record, name)) for name in _EVENT_FIELDS}
    shown["raw"] = (text(record, "_raw") or "")[:_MAX_RAW_LENGTH]
    return {name: value for name, value in shown.items() if value}


def _summarize(record: dict[str, Any]) -> str:
    """Summarize an event: `linux_secure failure: Failed password, of ann from 203.0.113.7`."""
    kind = first_text(record, "sourcetype") or "an event"
    action, subject = (
        first_text(record, "action"),
        first_text(record, "signature") or first_text(record, "subject"),
    )
    user, source, target = (first_text(record, name) for name in ("user", "src", "dest"))
    parts = [f"of {user}" if user else "", f"from {source}" if source else ""]
    subject_and_ends = " ".join(filter(None, [*parts, f"to {target}" if target else ""]))
    details = ", ".join(filter(None, [subject, subject_and_ends]))
    return " ".join(filter(None, [kind, action])) + (f": {details}" if details else "")


def _find_relations(record: dict[str, Any], at: datetime) -> Iterator[Relation]:
    """Yield connections, sign-ins and name resolutions."""
    sources, targets = (_find_hosts(record, name) for name in ("src", "dest"))
    yield from relate(sources, RelationType.CONNECTED_TO, targets, at)
    if "authentication" in texts(record, "tag") and first_text(record, "action") == "success":
        users = _parse_field(record, "user", EntityKind.USER)
        yield from relate(users, RelationType.LOGGED_ON_TO, targets, at)
    asked = _parse_field(record, "query", EntityKind.DOMAIN)
    answers = _parse_field(record, "answer", EntityKind.DOMAIN)
    yield from relate(asked, RelationType.RESOLVES_TO, answers, at)


def _find_hosts(record: dict[str, Any], name: str) -> list[Entity]:
    """Return the address of `src` or `dest`, or else its name."""
    return _parse_field(record, f"{name}_ip", EntityKind.IP) or _parse_field(
        record, name, EntityKind.HOST
    )


def _parse_field(record: dict[str, Any], name: str, kind: EntityKind) -> list[Entity]:
    return [entity for value in texts(record, name) for entity in parse_entities(kind, value)]
