"""Mapping of notices to incidents.

https://docs.zeek.org/en/current/scripts/base/frameworks/notice/main.zeek.html#type-Notice::Info
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin import (
    Alert,
    Entity,
    EntityKind,
    Incident,
    Severity,
    find_observables,
    parse_tactics,
)
from tocsin_connectors.siem.entity_fields import FieldContent, parse_field
from tocsin_connectors.siem.files import name_alert, name_group
from tocsin_connectors.siem.records import (
    EntityRoles,
    FlowPaths,
    describe_value,
    find_flow,
    find_techniques_in_text,
    parse_utc,
    require_text,
    text,
    union,
)
from tocsin_connectors.siem.zeek.notices import (
    ASSUMED_SEVERITIES,
    NAMES_OF_PROPERTIES,
    NAMES_OF_VICTIMS,
    SUBJECTS,
    TECHNIQUES,
    match_notice,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 10**11
"""Numbers from here on are milliseconds since 1970 (`JSON::TS_MILLIS`), and seconds below."""
_CVE = re.compile(r"\bCVE[-_](\d{4})[-_](\d{4,7})(?!\d)", re.IGNORECASE)
_COMMON_NAME = re.compile(r"(?:^|[,/])\s*CN=([^,/]+)")
_SAMPLED_SERVERS = "Sampled servers:"
_ENDS = ("id.orig_h", "src", "id.resp_h", "dst")
"""Fields for the address that a notice is grouped by, in order of preference."""
_FLOW = FlowPaths(
    source=("id.orig_h", "src"),
    source_port=("id.orig_p",),
    target=("id.resp_h", "dst"),
    target_port=("id.resp_p", "p"),
    protocol=("proto",),
)
_IDENTITY_FIELDS = ("uid", "fuid", "msg", "sub", "src", "dst", "p", "n", "id.orig_p", "id.resp_p")


def parse_time(record: dict[str, Any]) -> datetime:
    """Return the time of a record of any log: in seconds or milliseconds, or in ISO 8601.

    Raises ValueError if it has none.
    """
    value = record.get("ts")
    if isinstance(value, str):
        return parse_utc(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
        try:
            return _EPOCH + timedelta(seconds=seconds)
        except OverflowError as error:
            raise ValueError(f"the time {value} is out of range") from error
    raise ValueError(f"ts is {describe_value(value)}")


def build_incident(
    record: dict[str, Any], window: timedelta, severities: Mapping[str, Severity]
) -> Incident:
    """Return the incident of a notice, by type, source and clock interval.

    `severities` are the operator's, by notice type. Raises ValueError if the type or a valid time
    is missing.
    """
    note = require_text(record, "note")
    occurred_at = parse_time(record)
    given = match_notice(note, severities)
    severity = given or match_notice(note, ASSUMED_SEVERITIES) or Severity.MEDIUM
    title = text(record, "msg") or note
    place = next((found.value for key in _ENDS for found in _parse_address(record, key)), "-")
    roles = find_roles(record, note)
    moment = occurred_at.isoformat()
    return Incident(
        external_id=name_group(occurred_at, window, note, place),
        title=title,
        description="\n".join(_describe(record, note)),
        severity=severity,
        severity_assumed=given is None,
        occurred_at=occurred_at,
        techniques=union([_find_techniques(record, note)]),
        tactics=union([_find_tactics(note)]),
        entities=union([find_entities(record, note)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=(
            Alert(
                external_id=name_alert(
                    [note, moment, place, *(record.get(key) for key in _IDENTITY_FIELDS)]
                ),
                title=title,
                severity=severity,
                occurred_at=occurred_at,
                rule=note,
                flow=find_flow(record, _FLOW),
                record=record,
            ),
        ),
    )


def find_entities(record: dict[str, Any], note: str) -> Iterator[Entity]:
    """Yield the entities of a notice: its addresses, its file, its subject and its CVEs."""
    for key in ("id.orig_h", "id.resp_h", "src", "dst"):
        yield from _parse_address(record, key)
    yield from parse_field(FieldContent.URL, text(record, "file_desc") or "")
    yield from _find_subject(record, note)
    for value in (note, text(record, "msg") or ""):
        for match in _CVE.finditer(value):
            yield Entity(EntityKind.CVE, f"CVE-{match[1]}-{match[2]}")


def find_roles(record: dict[str, Any], note: str) -> EntityRoles:
    """Return originator and responder of the connection, or else `src` and `dst`."""
    originators, responders = (
        tuple(_parse_address(record, key)) for key in ("id.orig_h", "id.resp_h")
    )
    targets = tuple(_find_sampled_servers(record))
    if originators or responders:
        return EntityRoles(originators, union([responders, targets]))
    sources, others = (tuple(_parse_address(record, key)) for key in ("src", "dst"))
    if note in NAMES_OF_VICTIMS:
        return EntityRoles(others, sources)
    if match_notice(note, dict.fromkeys(NAMES_OF_PROPERTIES, True)):
        return EntityRoles()
    return EntityRoles(sources, union([others, targets]))


def _parse_address(record: dict[str, Any], key: str) -> tuple[Entity, ...]:
    return parse_field(FieldContent.ADDRESS, text(record, key) or "")


def _find_subject(record: dict[str, Any], note: str) -> Iterator[Entity]:
    """Yield the entities in `sub`, whose content depends on the notice type."""
    subject = text(record, "sub")
    if subject is None:
        return
    yield from _find_sampled_servers(record)
    if note == "Intel::Notice":  # the indicator that was seen
        yield from find_observables(subject).entities
    elif content := SUBJECTS.get(note):
        yield from parse_field(content, subject)
    elif note.startswith("SSL::"):  # the subject of the certificate
        for match in _COMMON_NAME.finditer(subject):
            yield from parse_field(FieldContent.DOMAIN, match[1].removeprefix("*."))


def _find_sampled_servers(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the servers that password guessing was seen at."""
    before, found, after = (text(record, "sub") or "").partition(_SAMPLED_SERVERS)
    if found and not before:
        for value in after.split(","):
            yield from parse_field(FieldContent.ADDRESS, value)


def _find_techniques(record: dict[str, Any], note: str) -> Iterator[str]:
    """Yield the techniques of a type, and those that BZAR names in `sub`."""
    yield from match_notice(note, TECHNIQUES) or ()
    if note.startswith("ATTACK::"):
        yield from find_techniques_in_text(text(record, "sub") or "")


def _find_tactics(note: str) -> Iterator[str]:
    """Yield the tactics in the notice types of BZAR, such as `ATTACK::Lateral_Movement`."""
    module, _, name = note.partition("::")
    if module == "ATTACK":
        for suffix in ("_Extracted_File", "_Multiple_Attempts"):
            name = name.removesuffix(suffix)
        yield from parse_tactics(name.split("_and_"))


def _describe(record: dict[str, Any], note: str) -> Iterator[str]:
    """Yield the lines of the description: type, details, file and sensor."""
    yield f"Notice type: {note}"
    for what, member in (
        ("Details", "sub"),
        ("File", "file_desc"),
        ("Type of the file", "file_mime_type"),
        ("Sensor", "peer_descr"),
    ):
        if value := text(record, member):
            yield f"{what}: {value}"
