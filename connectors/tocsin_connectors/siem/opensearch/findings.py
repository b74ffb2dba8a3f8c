"""What has raised an alert: findings, with the documents in which rules have matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tocsin import Alert, Entity, Incident, Severity, find_in_record
from tocsin_connectors.siem.indices.documents import decoded, more_entities_in
from tocsin_connectors.siem.opensearch.alerts import moment
from tocsin_connectors.siem.records import children, text, texts, union

MOST_ENTITIES = 200
"""So many entities are taken of one document."""
LEVELS = {severity.value.casefold(): severity for severity in Severity}
"""The levels of Sigma rules, which are among the tags of what has matched."""
_TECHNIQUE = re.compile(r"attack\.(t\d{4}(?:\.\d{3})?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a finding tells."""

    alert: Alert | None
    severity: Severity | None
    techniques: tuple[str, ...]
    entities: tuple[Entity, ...]


def finding_of(record: dict[str, Any]) -> Finding:
    """Return what a finding tells, as far as it can be understood."""
    queries = children(record, "queries")
    tags = [tag for query in queries for tag in texts(query, "tags")]
    levels = [LEVELS[tag.casefold()] for tag in tags if tag.casefold() in LEVELS]
    severity = max(levels, key=lambda level: level.rank, default=None)
    documents = list(documents_of(record))
    found = [find_in_record(document, MOST_ENTITIES) for document in documents]
    more = map(more_entities_in, documents)
    named = (match[1].upper() for tag in tags if (match := _TECHNIQUE.fullmatch(tag)))
    return Finding(
        alert=_alert(record, queries, severity),
        severity=severity,
        techniques=union([named, *(it.techniques for it in found)]),
        entities=union([*(it.entities for it in found), *more]),
    )


def documents_of(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the documents of a finding, which stand in it as text that is JSON."""
    for place in children(record, "document_list"):
        if document := decoded(place.get("document")):
            yield document


def _alert(
    record: dict[str, Any], queries: list[dict[str, Any]], severity: Severity | None
) -> Alert | None:
    identifier, occurred_at = text(record, "id"), moment(record.get("timestamp"))
    if identifier is None or occurred_at is None:
        return None
    rules = [name for query in queries if (name := text(query, "name"))]
    return Alert(
        external_id=identifier,
        title=", ".join(rules)[:200] or "OpenSearch finding",
        severity=severity or Severity.MEDIUM,
        occurred_at=occurred_at,
    )


def with_findings(incident: Incident, records: Iterable[dict[str, Any]]) -> Incident:
    """Return the incident with what its findings tell.

    The trigger's level counts; where an alert has none, the highest of the rules that have matched.
    """
    findings = [finding_of(record) for record in records]
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
