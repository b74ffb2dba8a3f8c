"""What a report cites, and what it may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tocsin.model import (
    Edge,
    IncidentRecord,
    Match,
    Neighbourhood,
    NodeKind,
    Report,
    Sighting,
)
from tocsin.reports import to_json


def cited_in(report: Report) -> set[str]:
    """Return the evidence of all its statements, such as `step:12` and `incident:7`."""
    return set(_evidence(to_json(report)))


def citable_after(report: Report) -> set[str]:
    """Return what may be cited in a session that came to this report before."""
    return cited_in(report) | {f"incident:{number}" for number in report.incidents}


def _evidence(part: Any) -> Iterator[str]:
    match part:
        case dict():
            yield from part.get("evidence", ())
            for member in part.values():
                yield from _evidence(member)
        case list():
            for item in part:
                yield from _evidence(item)


def incidents_in(content: Any) -> Iterator[str]:
    """Yield the incidents that an answer names, as they are cited."""
    match content:
        case tuple():
            for item in content:
                yield from incidents_in(item)
        case IncidentRecord(number=number):
            yield f"incident:{number}"
        case Sighting(recent=numbers):
            yield from (f"incident:{number}" for number in numbers)
        case Match(kind="incident", id=number):
            yield f"incident:{number}"
        case Neighbourhood(nodes=nodes, edges=edges):
            incidents = (node.value for node in nodes if node.kind == NodeKind.INCIDENT)
            yield from (f"incident:{number}" for number in incidents)
            yield from incidents_in(edges)
        case Edge(known_from=sources):
            yield from (source for source in sources if source.startswith("incident:"))
