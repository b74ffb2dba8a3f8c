"""What a report cites, and what it may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tocsin.model import Edge, IncidentRecord, Match, Neighborhood, NodeKind, Report, Sighting
from tocsin.reports import to_json


def collect_citations(report: Report) -> set[str]:
    """Return the evidence of all its statements, such as `step:12` and `incident:7`."""
    return set(_walk_evidence(to_json(report)))


def collect_citable(report: Report) -> set[str]:
    """Return what may be cited in a session that came to this report before."""
    return collect_citations(report) | {f"incident:{number}" for number in report.incidents}


def _walk_evidence(part: Any) -> Iterator[str]:
    match part:
        case dict():
            yield from part.get("evidence", ())
            for member in part.values():
                yield from _walk_evidence(member)
        case list():
            for item in part:
                yield from _walk_evidence(item)


def find_cited_incidents(content: Any) -> Iterator[str]:
    """Yield the incidents that an answer names, as they are cited."""
    match content:
        case tuple():
            for item in content:
                yield from find_cited_incidents(item)
        case IncidentRecord(number=number):
            yield f"incident:{number}"
        case Sighting(recent=numbers):
            yield from (f"incident:{number}" for number in numbers)
        case Match(kind="incident", id=number):
            yield f"incident:{number}"
        case Neighborhood(nodes=nodes, edges=edges):
            incidents = (node.value for node in nodes if node.kind == NodeKind.INCIDENT)
            yield from (f"incident:{number}" for number in incidents)
            yield from find_cited_incidents(edges)
        case Edge(known_from=sources):
            yield from (source for source in sources if source.startswith("incident:"))
