"""Mapping of detections and of events in the Unified Data Model.

https://cloud.google.com/chronicle/docs/reference/rest/v1alpha/Noun and
https://cloud.google.com/chronicle/docs/reference/udm-field-list
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity, parse_tactics
from tocsin_connectors.siem.entity_fields import FieldContent, parse_field
from tocsin_connectors.siem.records import (
    EntityRoles,
    child,
    children,
    find_field_roles,
    find_tactics,
    find_techniques_in_text,
    number,
    parse_entities,
    parse_optional_time,
    parse_utc,
    require_text,
    text,
    texts_at,
    union,
)

SEVERITIES: Mapping[str, Severity] = {
    "info": Severity.INFORMATIONAL,
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
UNSPECIFIED = frozenset({"unknown_severity", "unspecified", "priority_unspecified"})
"""Values that mean nothing, so the next field counts."""
STATUSES: Mapping[str, IncidentStatus] = {
    "new": IncidentStatus.NEW,
    "open": IncidentStatus.NEW,
    "reviewed": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
STATUS_WORDS: Mapping[IncidentStatus, str] = {
    IncidentStatus.NEW: "NEW",
    IncidentStatus.ACTIVE: "REVIEWED",
    IncidentStatus.CLOSED: "CLOSED",
}


def parse_severity(word: str | None) -> Severity | None:
    """Return the severity of a word such as `PRIORITY_HIGH` or `High`, or None."""
    return SEVERITIES.get((word or "").casefold().removeprefix("priority_"))


_MIN_SCORES: Mapping[int, Severity] = {
    90: Severity.CRITICAL,
    70: Severity.HIGH,
    40: Severity.MEDIUM,
    20: Severity.LOW,
}
"""Lowest risk score of each severity; an alert without a score of its own has 40."""


def rate_score(score: int) -> Severity:
    """Return the severity of a rule's risk score, for detections without a severity."""
    rated = (severity for least, severity in _MIN_SCORES.items() if score >= least)
    return next(rated, Severity.INFORMATIONAL)


def parse_status(word: str | None) -> IncidentStatus | None:
    """Return the status of a detection by Google's term, or None for unknown terms."""
    return STATUSES.get((word or "").casefold())


_NOUNS = ("principal", "target", "src", "observer", "intermediary", "about")
_NOUN_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: ("ip", "asset.ip"),
    EntityKind.HOST: ("hostname", "asset.hostname"),
    EntityKind.USER: ("user.userid", "user.windowsSid"),
    EntityKind.EMAIL: ("user.emailAddresses", "email"),
    EntityKind.DOMAIN: ("domain.name",),
    EntityKind.URL: ("url",),
    EntityKind.FILE_HASH: (
        *("file.sha256", "file.sha1", "file.md5"),
        *("process.file.sha256", "process.file.sha1", "process.file.md5"),
    ),
    EntityKind.FILE: ("file.fullPath",),
    EntityKind.PROCESS: ("process.file.fullPath",),
    EntityKind.CLOUD_RESOURCE: ("resource.name",),
}
_EVENT_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.DOMAIN: ("network.dns.questions.name",),
    EntityKind.EMAIL: ("network.email.from", "network.email.to"),
    EntityKind.URL: ("network.http.referralUrl",),
    EntityKind.CVE: ("extensions.vulns.vulnerabilities.cveId",),
}
ENTITY_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    kind: (
        *(f"{noun}.{path}" for noun in _NOUNS for path in _NOUN_FIELDS.get(kind, ())),
        *_EVENT_FIELDS.get(kind, ()),
    )
    for kind in (*_NOUN_FIELDS, EntityKind.CVE)
}
"""Fields that hold entities, by kind, in the spelling of responses."""


_HASHES = ("sha256", "sha1", "md5")
_PARENT = "process.parentProcess.file"
_READ_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    **ENTITY_FIELDS,
    **{
        kind: (
            *ENTITY_FIELDS[kind],
            *(f"securityResult.about.{path}" for path in _NOUN_FIELDS.get(kind, ())),
            *more,
        )
        for kind, more in {
            **dict.fromkeys(_NOUN_FIELDS, ()),
            EntityKind.IP: ("network.dns.answers.data",),
            EntityKind.EMAIL: ("network.email.cc", "network.email.bcc"),
            EntityKind.PROCESS: tuple(f"{noun}.{_PARENT}.fullPath" for noun in _NOUNS),
            EntityKind.FILE_HASH: tuple(
                f"{noun}.{_PARENT}.{name}" for noun in _NOUNS for name in _HASHES
            ),
        }.items()
    },
}
"""Fields that are read; those that are not searched for are answers, copies and results."""


def find_entities(event: dict[str, Any], within: str = "") -> Iterator[Entity]:
    """Yield the entities of an event, or of a noun such as `principal`."""
    for kind, paths in _READ_FIELDS.items():
        for path in paths:
            if path.startswith(within):
                for value in texts_at(event, path):
                    yield from parse_entities(kind, value)
    for noun in _NOUNS:
        if noun.startswith(within.removesuffix(".")):
            yield from _parse_command_line(child(child(event, noun), "process"))


def _parse_command_line(process: dict[str, Any]) -> Iterator[Entity]:
    """Yield the program of a command line, if the process has no file."""
    found = _PROGRAM.match(text(process, "commandLine") or "")
    if found and not text(child(process, "file"), "fullPath"):
        yield from parse_entities(EntityKind.PROCESS, found["quoted"] or found["bare"])


_PROGRAM = re.compile(r"""\s*(?:"(?P<quoted>[^"]{1,500})"|(?P<bare>[^\s"]{1,500}))""")
_CONTENTS: Mapping[str, FieldContent] = {
    **dict.fromkeys(("ip", "ips", "address"), FieldContent.ADDRESS),
    **dict.fromkeys(("host", "hostname", "hosts", "hostnames"), FieldContent.HOST),
    **dict.fromkeys(("user", "userid", "username", "users"), FieldContent.USER),
    **dict.fromkeys(("email", "emails"), FieldContent.EMAIL),
    **dict.fromkeys(("domain", "domains"), FieldContent.DOMAIN),
    **dict.fromkeys(("url", "urls"), FieldContent.URL),
    **dict.fromkeys(("hash", "hashes", *_HASHES), FieldContent.FILE_HASH),
    "process": FieldContent.PROGRAM,
}
"""Contents of the variables of rules, by the last word of their name, such as `src_ip`."""


def _find_variables(rule: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities in the match and outcome variables of a rule."""
    for variable in (*children(rule, "detectionFields"), *children(rule, "outcomes")):
        name = re.split(r"[^a-z0-9]+", (text(variable, "key") or "").casefold().strip("$"))[-1]
        if content := _CONTENTS.get(name):
            listed = texts_at(variable, "stringSeq.stringVals")
            for value in [*(text(variable, "value") or "").split(","), *listed]:
                yield from parse_field(content, value)


_ROLE_KINDS = frozenset({EntityKind.IP, EntityKind.HOST, EntityKind.USER, EntityKind.EMAIL})


def find_roles(event: dict[str, Any]) -> EntityRoles:
    """Return the source and the target of an event: `principal` and `src`, and `target`.

    https://cloud.google.com/chronicle/docs/unified-data-model/udm-usage
    """
    sources, targets = (
        [
            entity
            for noun in nouns
            for entity in find_entities(event, f"{noun}.")
            if entity.kind in _ROLE_KINDS
        ]
        for nouns in (("principal", "src"), ("target",))
    )
    mail = find_field_roles(event, _SENDERS, _RECIPIENTS)
    return EntityRoles(union([sources, mail.sources]), union([targets, mail.targets]))


_SENDERS = {EntityKind.EMAIL: ("network.email.from",)}
_RECIPIENTS = {
    EntityKind.EMAIL: ("network.email.to", "network.email.cc", "network.email.bcc"),
}


def build_incident(given: Mapping[str, Any]) -> Incident:
    """Return the incident of a detection. Raises ValueError if it has no ID or no time."""
    record = dict(given)
    name = require_text(record, "id")
    created_at, changed_at = parse_times(record)
    rule = next(iter(children(record, "detection")), {})
    feedback = child(record, "feedbackSummary")
    word, status = _select_severity(rule, feedback), text(feedback, "status")
    severity = parse_severity(word)
    if word is None and (score := number(rule, "riskScore")) is not None:
        word, severity = str(score), rate_score(score)
    title = text(rule, "ruleName") or _get_label(rule, _TITLE_LABELS) or f"Detection {name}"
    occurred_at = _parse_start(record) or created_at
    roles = EntityRoles.merge(map(find_roles, _iterate_events(record)))
    return Incident(
        external_id=name,
        title=title,
        description="\n".join(_describe(rule)),
        severity=severity or Severity.MEDIUM,
        raw_severity=word,
        severity_assumed=severity is None,
        status=parse_status(status) or IncidentStatus.NEW,
        raw_status=status,
        occurred_at=occurred_at,
        changed_at=changed_at,
        source_url=_get_link(rule),
        techniques=union([_find_techniques(rule)]),
        tactics=union([_find_rule_tactics(rule)]),
        entities=union([*map(find_entities, _iterate_events(record)), _find_variables(rule)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=(
            Alert(
                external_id=name,
                title=title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
                rule=text(rule, "ruleName") or text(rule, "ruleId"),
                record=record,
            ),
        ),
    )


def parse_times(record: dict[str, Any]) -> tuple[datetime, datetime]:
    """Return when a detection was created, and when it last changed.

    Raises ValueError if it has no creation time. `detectionTime` is neither: it is the end of the
    interval that the rule examined, hours earlier for a daily rule.
    """
    created = require_text(record, "createdTime")
    created_at = parse_utc(created)
    feedback = child(record, "feedbackSummary")
    later = (
        parse_optional_time(record, "lastUpdatedTime"),
        parse_optional_time(feedback, "createTime"),
    )
    return created_at, max([created_at, *(moment for moment in later if moment)])


def _parse_start(record: dict[str, Any]) -> datetime | None:
    """Return the time of the first event, or else when the examined interval starts."""
    metadata = (child(event, "metadata") for event in _iterate_events(record))
    times = [at for item in metadata if (at := parse_optional_time(item, "eventTimestamp"))]
    return (
        min(times, default=None)
        or parse_optional_time(child(record, "timeWindow"), "startTime")
        or parse_optional_time(record, "detectionTime")
    )


def _select_severity(rule: dict[str, Any], feedback: dict[str, Any]) -> str | None:
    """Return the severity term of the analyst, or else of the rule."""
    priorities = (
        *(text(feedback, "priority"), text(rule, "severity")),
        _get_label(rule, ("severity",)),
    )
    return next((word for word in priorities if word and word.casefold() not in UNSPECIFIED), None)


def _get_label(rule: dict[str, Any], keys: Sequence[str]) -> str | None:
    """Return the first value of a rule's labels, or else outcomes, with one of several keys."""
    labels = [*children(rule, "ruleLabels"), *children(rule, "outcomes")]
    return next(
        (
            value
            for label in labels
            if (text(label, "key") or "").casefold() in keys and (value := text(label, "value"))
        ),
        None,
    )


_TITLE_LABELS = ("rule_name", "rulename", "name", "title")


def _describe(rule: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the description: finding and detection fields."""
    if description := text(rule, "description") or text(rule, "summary"):
        yield description
    for detectionfield in children(rule, "detectionFields"):
        if (key := text(detectionfield, "key")) and (value := text(detectionfield, "value")):
            yield f"{key}: {value}"


def _get_link(rule: dict[str, Any]) -> str | None:
    url = text(rule, "urlBackToProduct")
    return url if url and url.startswith("https://") else None


def _find_techniques(rule: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK IDs of a rule, from its labels and attack details."""
    for rulelabel in children(rule, "ruleLabels"):
        if re.search("mitre|technique", text(rulelabel, "key") or "", re.IGNORECASE):
            yield from find_techniques_in_text(text(rulelabel, "value") or "")
    for item in children(child(rule, "attackDetails"), "techniques"):
        yield from find_techniques_in_text(text(item, "subtechniqueId") or text(item, "id") or "")


def _find_rule_tactics(rule: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK tactics of a rule, from its labels and attack details."""
    for label in children(rule, "ruleLabels"):
        if "tactic" in (text(label, "key") or "").casefold():
            yield from parse_tactics(re.split(r"[,;]", text(label, "value") or ""))
    yield from find_tactics(rule, "attackDetails.tactics.id", "attackDetails.tactics.name")


def _iterate_events(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for element in children(record, "collectionElements"):
        for reference in children(element, "references"):
            yield from children(reference, "event")
            yield from (
                {"about": entity} for entity in children(child(reference, "entity"), "entity")
            )
