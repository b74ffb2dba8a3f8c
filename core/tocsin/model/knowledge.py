"""Records beyond one incident: the graph of entities, incidents and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tocsin.model.entity import Entity
from tocsin.model.incident import Alert
from tocsin.model.marking import Marking
from tocsin.model.vocabulary import IncidentStatus, Json, Severity, Vocabulary


class NodeKind(Vocabulary):
    """Kinds of graph nodes that are not entities. An entity's node has the entity's kind."""

    INCIDENT = "incident"
    SESSION = "session"
    TECHNIQUE = "technique"


@dataclass(frozen=True, slots=True)
class Node:
    """A node in the graph. Its `kind` is an entity kind or a NodeKind, in which `value` is unique.

    An incident's value is its number, a session's value is its ID, and a technique's value is its
    ATT&CK ID.
    """

    kind: str
    value: str

    @classmethod
    def of(cls, entity: Entity) -> Node:
        """Return an entity's node."""
        return cls(entity.kind.value, entity.value)


class RelationType(Vocabulary):
    """The meaning of an edge, read from its source to its target."""

    INVOLVES = "involves"
    """From an incident to an entity."""
    USES = "uses"
    """From an incident to a technique."""
    MERGED_INTO = "merged-into"
    """From an incident to the incident into which it was merged."""
    EXAMINED = "examined"
    """From a session to an incident."""
    FOUND = "found"
    """From a session to an entity."""
    CONNECTED_TO = "connected-to"
    RESOLVES_TO = "resolves-to"
    LOGGED_ON_TO = "logged-on-to"
    EXECUTED_ON = "executed-on"
    STARTED = "started"
    """From a process to another process."""
    PART_OF = "part-of"
    """From a URL or an email address to its domain, or from a domain to its parent domain."""
    DOWNLOADED_FROM = "downloaded-from"
    SENT_TO = "sent-to"
    RELATED_TO = "related-to"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation between two entities that an enricher or an event in a SIEM reports."""

    source: Entity
    type: RelationType
    target: Entity
    at: datetime | None = None
    """The time of the relation; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge in the graph, with its origins."""

    source: Node
    type: RelationType
    target: Node
    first_seen: datetime
    last_seen: datetime
    count: int
    """How often the relation was observed, at least; 1 for an edge from an incident's data.

    Tocsin does not count an observation between the known `first_seen` and `last_seen`, because it
    can be a repetition.
    """
    known_from: tuple[str, ...]
    """The latest origins, latest first: incidents, such as `incident:7`, and steps in a session's
    ledger, such as `session:ses_01J...#12`."""
    marking: Marking = field(default_factory=Marking)
    """The strictest marking of the origins that are not incidents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighborhood:
    """The part of the graph around a node."""

    nodes: tuple[Node, ...]
    """The requested node, then the other nodes by distance."""
    edges: tuple[Edge, ...]
    complete: bool
    """Whether these are all nodes; False if the neighborhood exceeds the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Where and when an entity was seen before."""

    entity: Entity
    incident_count: int
    """How many incidents involve the entity; 0 if it was never seen."""
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    recent: tuple[int, ...] = ()
    """The numbers of the latest incidents that involve the entity, newest first; at most 10."""
    internal: bool = False
    """Whether the entity belongs to the organization; see `Environment.is_internal`."""
    well_known: bool = False
    """Whether the entity is common and insignificant, such as a public DNS resolver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRecord:
    """An incident as Tocsin stores it."""

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
    tactics: tuple[str, ...] = ()
    entities: tuple[Entity, ...] = ()
    sources: tuple[Entity, ...] = ()
    """The entities from which the activity came, if the SIEM reports them."""
    targets: tuple[Entity, ...] = ()
    """The entities at which the activity was directed, if the SIEM reports them."""
    alerts: tuple[Alert, ...] = ()
    """The incident's latest alerts, earliest first."""
    marking: Marking = field(default_factory=Marking)
    severity_assumed: bool = False
    """Whether Tocsin assumed Medium because the SIEM's severity was missing or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiemEvent:
    """A SIEM record other than an incident, such as a log line, a flow or a decision."""

    external_id: str | None
    """The record's ID in the SIEM; None if there is none."""
    occurred_at: datetime
    summary: str
    """A one-line description."""
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    fields: Mapping[str, Json] = field(default_factory=dict)
    """The record's fields that matter to an analyst."""


class Disposition(Vocabulary):
    """A source's assessment of an entity, from worst to best."""

    MALICIOUS = "malicious"
    SUSPICIOUS = "suspicious"
    UNKNOWN = "unknown"
    BENIGN = "benign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrichment:
    """What an enricher knows about an entity."""

    entity: Entity
    summary: str
    """One sentence that does not name the enricher."""
    disposition: Disposition = Disposition.UNKNOWN
    score: int | None = None
    """The source's threat score, from 0 to 100; None if there is none."""
    tags: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    facts: Mapping[str, Json] = field(default_factory=dict)
    """The facts behind the summary, by the names that the source uses."""
    link: str | None = None
    """The URL of a page about the entity."""
