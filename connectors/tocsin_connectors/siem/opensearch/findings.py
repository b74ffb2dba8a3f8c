"""What has raised an alert: findings, with the documents in which rules have matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tocsin import Alert, Entity, Incident, Severity, find_in_record
from tocsin_connectors.siem.indices.documents import decode_object, find_ecs_entities
from tocsin_connectors.siem.opensearch.alerts import parse_time
from tocsin_connectors.siem.records import children, text, texts, union

MAX_ENTITIES = 200
"""So many entities are taken of one document."""
RULE_LEVELS = {severity.value.casefold(): severity for severity in Severity}
"""The levels of Sigma rules, which are among the tags of what has matched."""
_TECHNIQUE_TAG = re.compile(r"attack\.(t\d{4}(?:\.\d{3})?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenSearchFinding:
    """What a finding tells."""

    alert: Alert | None
    severity: Severity | None
    techniques: tuple[str, ...]
    entities: tuple[Entity, ...]


def parse_finding(record: dict[str, Any]) -> OpenSearchFinding:
    """Return what a finding tells, as far as it can be understood."""
    queries = children(record, "queries")
    tags = [tag for query in queries for tag in texts(query, "tags")]
    levels = [RULE_LEVELS[tag.casefold()] for tag in tags if tag.casefold() in RULE_LEVELS]
    severity = max(levels, key=lambda level: level.rank, default=None)
    documents = list(read_documents(record))
    found = [find_in_record(document, MAX_ENTITIES) for document in documents]
    more = map(find_ecs_entities, documents)
    named = (match[1].upper() for tag in tags if (match := _TECHNIQUE_TAG.fullmatch(tag)))
    return OpenSearchFinding(
        alert=_build_alert(record, queries, severity),
        severity=severity,
        techniques=union([named, *(it.techniques for it in found)]),
        entities=union([*(it.entities for it in found), *more]),
    )


def read_documents(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the documents of a finding, which stand in it as text that is JSON."""
    for place in children(record, "document_list"):
        if document := decode_object(place.get("document")):
            yield document


def _build_alert(
    record: dict[str, Any], queries: list[dict[str, Any]], severity: Severity | None
) -> Alert | None:
    identifier, occurred_at = text(record, "id"), parse_time(record.get("timestamp"))
    if identifier is None or occurred_at is None:
        return None
    rules = [name for query in queries if (name := text(query, "name"))]
    return Alert(
        external_id=identifier,
        title=", ".join(rules)[:200] or "OpenSearch finding",
        severity=severity or Severity.MEDIUM,
        occurred_at=occurred_at,
    )


def attach_findings(incident: Incident, records: Iterable[dict[str, Any]]) -> Incident:
    """Return the incident with what its findings tell.

    The trigger's level counts; where an alert has none, the highest of the rules that have matched.
    """
    findings = [parse_finding(record) for record in records]
    levels = [finding.severity for finding in findings if finding.severity]
    if incident.raw_severity is None and levels:
        highest = max(levels, key=lambda level: level.rank)
        incident = replace(
            incident,
            severity=highest,
            raw_severity=highest.value.casefold(),
            severity_assumed=False,
        )
    return replace(
        incident,
        techniques=union(finding.techniques for finding in findings),
        entities=union(finding.entities for finding in findings),
        alerts=tuple(finding.alert for finding in findings if finding.alert),
    )
