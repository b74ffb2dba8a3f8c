"""From a record of any source type to the event that it tells of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.records import described, text, texts, union
from tocsin_connectors.siem.relating import related
from tocsin_connectors.siem.splunk.fields import entities_of
from tocsin_connectors.siem.splunk.findings import first, moment_of
from tocsin_connectors.siem.splunk.spl import ORIGIN
from tocsin_connectors.siem.typed import typed

_FIELDS = (
    *("index", "sourcetype", "source", "host", "eventtype", "tag", "action", "signature", "app"),
    *("user", "src_user", "src", "src_port", "dest", "dest_port", "dvc", "transport", "url"),
    *("http_method", "http_user_agent", "status", "query", "answer", "process", "process_name"),
    *("parent_process_name", "file_name", "file_path", "file_hash", "subject", "vendor_product"),
)
"""What an analyst would look at."""
_LONGEST_RAW = 1_000


def event_of(record: dict[str, Any]) -> SiemEvent:
    """Return what a record tells of; ValueError where it does not say when that was."""
    told = first(record, "_time")
    if told is None:
        raise ValueError(f"_time is {described(record.get('_time'))}")
    at = moment_of(told)
    return SiemEvent(
        external_id=text(record, ORIGIN),
        occurred_at=at,
        summary=" ".join(_summary(record).split()),
        entities=union([entities_of(record)]),
        relations=union([_relations(record, at)]),
        fields=_shown(record),
    )


def _shown(record: dict[str, Any]) -> dict[str, str]:
    shown = {name: ", ".join(texts(record, name)) for name in _FIELDS}
    shown["raw"] = (text(record, "_raw") or "")[:_LONGEST_RAW]
    return {name: value for name, value in shown.items() if value}


def _summary(record: dict[str, Any]) -> str:
    """Say what happened: `linux_secure failure: Failed password, of ann from 203.0.113.7`."""
    kind = first(record, "sourcetype") or "an event"
    action, told = first(record, "action"), first(record, "signature") or first(record, "subject")
    user, source, target = (first(record, name) for name in ("user", "src", "dest"))
    parts = [f"of {user}" if user else "", f"from {source}" if source else ""]
    whom = " ".join(filter(None, [*parts, f"to {target}" if target else ""]))
    said = ", ".join(filter(None, [told, whom]))
    return " ".join(filter(None, [kind, action])) + (f": {said}" if said else "")


def _relations(record: dict[str, Any], at: datetime) -> Iterator[Relation]:
    """Yield who has spoken with whom, who has signed in, and what a name stood for."""
    sources, targets = (_hosts(record, name) for name in ("src", "dest"))
    yield from related(sources, RelationType.CONNECTED_TO, targets, at)
    if "authentication" in texts(record, "tag") and first(record, "action") == "success":
        users = _all(record, "user", EntityKind.USER)
        yield from related(users, RelationType.LOGGED_ON_TO, targets, at)
    asked = _all(record, "query", EntityKind.DOMAIN)
    answers = _all(record, "answer", EntityKind.DOMAIN)
    yield from related(asked, RelationType.RESOLVES_TO, answers, at)


def _hosts(record: dict[str, Any], name: str) -> list[Entity]:
    """Return what `src` or `dest` is called, its address where that is told beside it."""
    return _all(record, f"{name}_ip", EntityKind.IP) or _all(record, name, EntityKind.HOST)


def _all(record: dict[str, Any], name: str, kind: EntityKind) -> list[Entity]:
    return [entity for value in texts(record, name) for entity in typed(kind, value)]
