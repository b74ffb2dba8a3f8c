"""Records beyond one incident: the graph of entities, incidents and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tocsin.model.incident import Alert, Entity
from tocsin.model.marking import Marking
from tocsin.model.vocabulary import IncidentStatus, Json, Severity, Vocabulary


class NodeKind(Vocabulary):
    """What kinds of node the graph has beside entities, which keep their own kinds."""

    INCIDENT = "incident"
    SESSION = "session"
    TECHNIQUE = "technique"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the graph; `kind` is an entity's kind or a NodeKind, `value` names one of it.

    An incident is named by its number, a session by its id, a technique by its ATT&CK id.
    """

    kind: str
    value: str

    @classmethod
    def of(cls, entity: Entity) -> Node:
        """Return the node of an entity."""
        return cls(entity.kind.value, entity.value)


class RelationType(Vocabulary):
    """What an edge of the graph says; each is read from its source to its target."""

    INVOLVES = "involves"  # incident -> entity
    USES = "uses"  # incident -> technique
    MERGED_INTO = "merged-into"  # incident -> incident
    EXAMINED = "examined"  # session -> incident
    FOUND = "found"  # session -> entity
    CONNECTED_TO = "connected-to"
    RESOLVES_TO = "resolves-to"
    LOGGED_ON_TO = "logged-on-to"
    EXECUTED_ON = "executed-on"
    STARTED = "started"  # a process another
    PART_OF = "part-of"  # a URL or mail address of its domain, a domain of its parent
    DOWNLOADED_FROM = "downloaded-from"
    SENT_TO = "sent-to"
    RELATED_TO = "related-to"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """That one entity has to do with another, as a SIEM's event or an enricher tells it."""

    source: Entity
    type: RelationType
    target: Entity
    at: datetime | None = None
    """When it was so; None where that is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge of the graph, with what it is known from."""

    source: Node
    type: RelationType
    target: Node
    first_seen: datetime
    last_seen: datetime
    count: int
    """Of how many moments it was told, at least; for what an incident says, 1.

    What was told of a moment between `first_seen` and `last_seen` may have been told before.
    """
    known_from: tuple[str, ...]
    """Some of what says so, the latest first: `incident:7`, or `session:ses_01J...#12` for a step
    of a session's ledger."""
    marking: Marking = field(default_factory=Marking)
    """Of what is told beside incidents, the strictest of what tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighborhood:
    """A part of the graph around a node."""

    nodes: tuple[Node, ...]
    """The nearest first; the one that was asked for is the first."""
    edges: tuple[Edge, ...]
    complete: bool
    """False where there is more than was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What is known of one entity here."""

    entity: Entity
    incident_count: int
    """In how many incidents it was; 0 where it was never seen."""
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    recent: tuple[int, ...] = ()
    """The numbers of the latest incidents with it, the newest first; 10 at most."""
    internal: bool = False
    """Whether the configuration says that it is ours."""
    well_known: bool = False
    """Whether it is known to be everywhere and to say nothing, such as a public resolver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRecord:
    """An incident as it is kept here."""

    number: int
    provider: str
    external_id: str
    title: str
    description: str
    severity: Severity
    status: IncidentStatus
    occurred_at: datetime
    updated_at: datetime
    alert_count: int = 0
    source_url: str | None = None
    merged_into: str | None = None
    techniques: tuple[str, ...] = ()
    entities: tuple[Entity, ...] = ()
    alerts: tuple[Alert, ...] = ()
    """The latest of its alerts, the earliest first."""
    marking: Marking = field(default_factory=Marking)
    severity_assumed: bool = False
    """Whether its SIEM gave no severity that is known, and Medium was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiemEvent:
    """One record of a SIEM that is no incident: a log line, a flow, a decision."""

    external_id: str | None
    """The SIEM's own identifier; None where it has none."""
    occurred_at: datetime
    summary: str
    """What happened, in one line."""
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    fields: Mapping[str, Json] = field(default_factory=dict)
    """The parts of the record that an analyst would look at."""


class Disposition(Vocabulary):
    """What a source says of an entity, from worst to best."""

    MALICIOUS = "malicious"
    SUSPICIOUS = "suspicious"
    UNKNOWN = "unknown"
    BENIGN = "benign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrichment:
    """What one enricher knows of one entity."""

    entity: Entity
    summary: str
    """One sentence that says it, without the enricher's name."""
    disposition: Disposition = Disposition.UNKNOWN
    score: int | None = None
    """The source's own measure of how bad it is, from 0 to 100; None where it has none."""
    tags: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    facts: Mapping[str, Json] = field(default_factory=dict)
    """What the sentence rests on, in the source's own words."""
    link: str | None = None
    """Where a person can see it."""
