"""What Next-Gen SIEM has logged: where it names what, and what an event tells.

The sensor's own events have names in CamelCase, those of others the names of the Elastic Common
Schema, which CrowdStrike's parsing standard prescribes.
https://github.com/CrowdStrike/logscale-community-content
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.records import describe_value, number, text, union
from tocsin_connectors.siem.relating import relate
from tocsin_connectors.siem.typed import parse_entities

EVENT_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: (
        *("RemoteAddressIP4", "RemoteAddressIP6", "LocalAddressIP4", "LocalAddressIP6", "aip"),
        *("source.ip", "destination.ip", "client.ip", "host.ip"),
    ),
    EntityKind.HOST: ("ComputerName", "host.name", "host.hostname"),
    EntityKind.USER: ("UserName", "UserPrincipal", "user.name", "user.email"),
    EntityKind.DOMAIN: ("DomainName", "dns.question.name", "url.domain", "destination.domain"),
    EntityKind.URL: ("url.full", "url.original"),
    EntityKind.FILE_HASH: (
        *("SHA256HashData", "MD5HashData"),
        *("file.hash.sha256", "file.hash.md5", "process.hash.sha256"),
    ),
    EntityKind.FILE: ("TargetFileName", "ImageFileName", "file.path"),
    EntityKind.PROCESS: ("FileName", "ContextBaseFileName", "ParentBaseFileName", "process.name"),
    EntityKind.EMAIL: ("email.from.address", "email.to.address", "user.email"),
}
_EVENT_NAME = "#event_simpleName"
_SHOWN_FIELDS = (
    *(_EVENT_NAME, "#repo", "#Vendor", "event.action", "event.outcome", "event_platform", "aid"),
    *(name for names in EVENT_FIELDS.values() for name in names),
    *("CommandLine", "RemotePort", "LocalPort", "destination.port", "message"),
)
"""What an analyst would look at."""
_RELATIONS: tuple[tuple[str | None, str, RelationType, str], ...] = (
    ("NetworkConnectIP4", "ComputerName", RelationType.CONNECTED_TO, "RemoteAddressIP4"),
    ("NetworkConnectIP6", "ComputerName", RelationType.CONNECTED_TO, "RemoteAddressIP6"),
    ("UserLogon", "UserName", RelationType.LOGGED_ON_TO, "ComputerName"),
    ("ProcessRollup2", "FileName", RelationType.EXECUTED_ON, "ComputerName"),
    ("ProcessRollup2", "ParentBaseFileName", RelationType.STARTED, "FileName"),
    (None, "source.ip", RelationType.CONNECTED_TO, "destination.ip"),
)
"""Of which events (None for any) which field says what of which other."""


def build_event(record: dict[str, Any]) -> SiemEvent:
    """Return what an event tells; ValueError where it does not say when that was."""
    at = _parse_time(record)
    return SiemEvent(
        external_id=text(record, "@id"),
        occurred_at=at,
        summary=" ".join(_summarize(record).split()),
        entities=union(
            _parse_field(record, name) for names in EVENT_FIELDS.values() for name in names
        ),
        relations=union(_find_relations(record, at)),
        fields={
            name: str(record[name])[:1_000] for name in _SHOWN_FIELDS if _is_present(record, name)
        },
    )


def _is_present(record: dict[str, Any], name: str) -> bool:
    return text(record, name) is not None or number(record, name) is not None


def _parse_time(record: dict[str, Any]) -> datetime:
    """Return when it was: milliseconds since 1970, at times as a text."""
    told = record.get("@timestamp")
    milliseconds = number(record, "@timestamp") or text(record, "@timestamp")
    try:
        return datetime.fromtimestamp(int(milliseconds or "") / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"@timestamp is {describe_value(told)}") from None


def _summarize(record: dict[str, Any]) -> str:
    """Say what happened: `NetworkConnectIP4: curl.exe, bastion, 203.0.113.7`."""
    what = text(record, _EVENT_NAME) or text(record, "event.action") or "an event"
    told = (text(record, name) for names in EVENT_FIELDS.values() for name in names)
    who = ", ".join(dict.fromkeys(it for it in told if it))
    return (f"{what}: {who}" if who else what)[:1_000]


def _parse_field(record: dict[str, Any], name: str) -> list[Entity]:
    value = text(record, name)
    kinds = (kind for kind, names in EVENT_FIELDS.items() if name in names)
    return [entity for kind in kinds if value for entity in parse_entities(kind, value)]


def _find_relations(record: dict[str, Any], at: datetime) -> Iterator[Iterator[Relation]]:
    what = text(record, _EVENT_NAME)
    for of, source, kind, target in _RELATIONS:
        if of in (None, what):
            yield relate(_parse_field(record, source), kind, _parse_field(record, target), at)
