"""Database schema.

Moments are kept as integer microseconds since the epoch in both databases, so that they sort,
compare and come back alike.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    literal_column,
    or_,
)
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

if TYPE_CHECKING:
    _MomentBase = TypeDecorator[datetime]
else:
    _MomentBase = TypeDecorator


class Timestamp(_MomentBase):
    """An aware datetime, kept as microseconds since the epoch."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Return what is stored."""
        return None if value is None else (value - EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        """Return what was stored, in UTC."""
        return None if value is None else EPOCH + timedelta(microseconds=value)


Document = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
# Only a plain INTEGER key is auto-incremented in SQLite.
Counter = BigInteger().with_variant(Integer(), "sqlite")

ENCRYPTED = {"encrypted": None}
"""Marks a column of values that the encryption key encrypts."""
OWN_WORDS = {"own_words": None}
"""Marks a column whose values are words of Tocsin, which erasure leaves as they are."""
GRANT_PURPOSE = "console session grant"
"""The purpose for which the key of sealed grants is derived from the encryption key."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# One row per sequence that is allotted in commit order: a transaction that allots numbers locks the
# row until it ends, so no later commit can appear before an earlier one.
sequences = Table(
    "sequences",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# One row per epoch, an unbroken history of the database; a new one begins where the database is
# older than what is known of it. `after` is the id of the epoch that was known then, and
# `known_number` its highest incident number; `found_number` is the one that the database held.
epochs = Table(
    "epochs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", String(40), nullable=False, unique=True),
    Column("started_at", Timestamp, nullable=False),
    Column("first_number", BigInteger, nullable=False),
    Column("first_change", BigInteger, nullable=False),
    Column("reason", Text),
    Column("after", String(40)),
    Column("found_number", BigInteger),
    Column("known_number", BigInteger),
)

# The nodes of a shared database, each with its clock's distance from the database's clock, by which
# `seen_at` is stored. `beat_at` is by the node's own clock, with the loops that were stuck then.
nodes = Table(
    "nodes",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("name", String(200), nullable=False),
    Column("clock_offset_ms", BigInteger, nullable=False),
    Column("seen_at", Timestamp, nullable=False),
    Column("beat_at", Timestamp),
    Column("stalled", Document),
    Column("roles", Document),
    Column("encryption_keys", Document),  # which it reads, and with which it encrypts
    Column("degraded", Document),  # plugin objects, with the reasons
    Column("replica_beat", BigInteger),  # None while the node does not mark what callers write
)

# The latest write of the callers who share a place
write_marks = Table(
    "write_marks",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("mark", BigInteger, nullable=False),
)

incidents = Table(
    "incidents",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("provider", String(100), nullable=False),
    Column("external_id", String(500), nullable=False),
    Column("external_number", String(200)),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("severity", String(20), nullable=False),
    Column("raw_severity", String(200)),
    Column("severity_assumed", Boolean, nullable=False),
    Column("status", String(20), nullable=False),
    Column("raw_status", String(200)),
    Column("merged_into", String(500)),
    Column("source_url", Text),
    Column("techniques", Document, nullable=False),
    Column("tactics", Document, nullable=False, server_default="[]"),
    Column("occurred_at", Timestamp, nullable=False),
    Column("source_changed_at", Timestamp),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("change", BigInteger, nullable=False, unique=True),
    Column("alert_outcome", String(20), nullable=False),
    Column("alert_count", Integer, nullable=False),
    Column("coverage_id", Counter, ForeignKey("coverage.id"), nullable=False),
    UniqueConstraint("provider", "external_id"),
    Index("ix_incidents_severity_change", "severity", "change"),
    Index("ix_incidents_status_change", "status", "change"),
    Index("ix_incidents_severity_status_change", "severity", "status", "change"),
    # With the columns of the other filters, by which a list is counted
    Index("ix_incidents_provider_change", "provider", "change", "severity", "status"),
    Index("ix_incidents_updated_at", "updated_at", "change"),
    Index("ix_incidents_occurred_at", "occurred_at", "number"),
    Index("ix_incidents_coverage_id", "coverage_id"),
)

# Finds the incidents merged into an incident; most have none
Index(
    "ix_incidents_merged_into",
    incidents.c.provider,
    incidents.c.merged_into,
    incidents.c.number,
    sqlite_where=incidents.c.merged_into.is_not(None),
    postgresql_where=incidents.c.merged_into.is_not(None),
)

# One row per incident: its JSON as it was last stored, so that a read answers without making it.
# `document` holds the members of the object without braces and `url`. It is valid where `change` is
# the incident's and `version` the current one; else the incident's own rows are read.
incident_documents = Table(
    "incident_documents",
    metadata,
    Column(
        "number",
        Counter,
        ForeignKey("incidents.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("change", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("document", Text, nullable=False),
)

# One row per incident that retention removed. One that is read again gets its number back.
removed_incidents = Table(
    "removed_incidents",
    metadata,
    Column("number", Counter, primary_key=True, autoincrement=False),
    Column("digest", String(32), nullable=False, unique=True),  # of its provider and external ID
    Column("alert_outcome", String(20), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Index("ix_removed_incidents_created_at", "created_at"),
)

# Number of incidents by severity and status. Triggers on `incidents` maintain it.
incident_counts = Table(
    "incident_counts",
    metadata,
    Column("severity", String(20), primary_key=True),
    Column("status", String(20), primary_key=True),
    Column("count", BigInteger, nullable=False),
)

incident_entities = Table(
    "incident_entities",
    metadata,
    Column("incident_number", ForeignKey("incidents.number"), primary_key=True),
    Column("kind", String(20), primary_key=True),
    Column("value", String(2048), primary_key=True),
    Column("change", BigInteger),  # the incident's, when it was first stored; null for the oldest
    Column("role", String(10)),  # source, target or both; null where it is unknown
    Index("ix_incident_entities_value_kind_incident_number", "value", "kind", "incident_number"),
)

incident_techniques = Table(
    "incident_techniques",
    metadata,
    Column("incident_number", ForeignKey("incidents.number"), primary_key=True),
    Column("technique", String(200), primary_key=True),
    Index("ix_incident_techniques_technique_incident_number", "technique", "incident_number"),
)

incident_alerts = Table(
    "incident_alerts",
    metadata,
    Column("incident_number", ForeignKey("incidents.number"), primary_key=True),
    Column("external_id", String(200), primary_key=True),
    Column("title", Text, nullable=False),
    Column("severity", String(20), nullable=False),
    Column("occurred_at", Timestamp, nullable=False),
    Column("flow", JSON(none_as_null=True)),
    Column("rule", Text),
    Column("record", JSON(none_as_null=True)),  # as the SIEM returned it; JSONB refuses NUL
)

# One row per triaged incident: what is decided about it here, beside what its SIEM says
incident_triage = Table(
    "incident_triage",
    metadata,
    Column(
        "incident_number",
        Counter,
        ForeignKey("incidents.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("assignee", String(300)),
    Column("acknowledged_by", String(300)),
    Column("acknowledged_at", Timestamp),
    Column("disposition", String(30), info=OWN_WORDS),
    Column("disposition_reason", Text),
    Column("disposition_source", String(20), info=OWN_WORDS),
    Column("disposition_by", String(300)),
    Column("disposition_at", Timestamp),
    Column("comment_count", Integer, nullable=False),
    Index("ix_incident_triage_assignee_incident_number", "assignee", "incident_number"),
    Index("ix_incident_triage_disposition_incident_number", "disposition", "incident_number"),
    Index("ix_incident_triage_disposition_at", "disposition_at"),
)

# The value of a link is the number of another incident, as text
incident_labels = Table(
    "incident_labels",
    metadata,
    Column(
        "incident_number",
        Counter,
        ForeignKey("incidents.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("kind", String(10), primary_key=True, info=OWN_WORDS),
    Column("value", String(300), primary_key=True),
    Index("ix_incident_labels_value_kind_incident_number", "value", "kind", "incident_number"),
)

incident_comments = Table(
    "incident_comments",
    metadata,
    Column("id", String(40), primary_key=True),
    Column(
        "incident_number",
        Counter,
        ForeignKey("incidents.number", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("text", Text, nullable=False),
    Column("created_by", String(300), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Index("ix_incident_comments_incident_number_id", "incident_number", "id"),
)

# One row per change of an incident's triage, with the incident's `change` that it made
incident_changes = Table(
    "incident_changes",
    metadata,
    Column(
        "incident_number",
        Counter,
        ForeignKey("incidents.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("change", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Timestamp, nullable=False),
    Column("by", String(300), nullable=False),
    Column("actor", Text, nullable=False),  # as in the audit log
    Column("members", Document, nullable=False),  # each with its values before and after
)

stream_positions = Table(
    "stream_positions",
    metadata,
    Column("provider", String(100), primary_key=True),
    Column("stream", String(100), primary_key=True),
    Column("position", Document),
    Column("revision", BigInteger, nullable=False),
    Column("first_read_done", Boolean, nullable=False),
    Column("covered_until", Timestamp),
    Column("updated_at", Timestamp, nullable=False),
)

# Pushes to each provider that an intake has accepted, by their number in its stream: those up to
# `stored` are stored, those up to `accepted` are known to be accepted. One node reads them.
intake_positions = Table(
    "intake_positions",
    metadata,
    Column("provider", String(100), primary_key=True),
    Column("stream", String(100), nullable=False),
    Column("stored", BigInteger, nullable=False),
    Column("accepted", BigInteger, nullable=False),
    Column("waiting_since", Timestamp),
    Column("node", BigInteger),
    Column("lease", String(40)),
    Column("leased_until", Timestamp),
    Column("updated_at", Timestamp, nullable=False),
)

# Shapes of the records of providers, by stream or kind of detail: paths, times
# and counts, no values. `drift` is what the last sample made of them.
record_shapes = Table(
    "record_shapes",
    metadata,
    Column("provider", String(100), primary_key=True),
    Column("kind", String(100), primary_key=True),
    Column("shape", Document, nullable=False),
    Column("drift", Document, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
)

# One row per provider that was ever read: its lease and its sync status. The node that holds the
# lease renews it; incidents of the provider are stored only under the token of the lease.
providers = Table(
    "providers",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("plugin", String(100), nullable=False),
    Column("poll_ms", BigInteger, nullable=False),
    Column("stream_intervals_ms", Document),  # of streams that are read less often
    Column("node", BigInteger),
    Column("lease", String(40)),
    Column("leased_until", Timestamp),
    Column("read_at", Timestamp),
    Column("succeeded_at", Timestamp),
    Column("failing_since", Timestamp),
    Column("failures", Integer, nullable=False),
    Column("outcome", String(20)),
    Column("reason", Text),
    Column("next_read_at", Timestamp),
    Column("clock_skew_ms", BigInteger),
)

# Incidents to refresh, since alerts and entities may arrive late; `step` counts the refreshes.
rereads = Table(
    "rereads",
    metadata,
    Column("provider", String(100), primary_key=True),
    Column("external_id", String(500), primary_key=True),
    Column("step", Integer, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("due_at", Timestamp, nullable=False),
    Index("ix_rereads_provider_due_at", "provider", "due_at"),
)

# Past intervals to read; `positions` holds the position of each stream and the completed streams.
backfills = Table(
    "backfills",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("provider", String(100), nullable=False),
    Column("start", Timestamp, nullable=False),
    Column("end", Timestamp, nullable=False),
    Column("origin", String(20), nullable=False),
    Column("alert", Boolean, nullable=False),
    Column("state", String(20), nullable=False),
    Column("positions", Document, nullable=False),
    Column("reached", Timestamp),
    Column("pages", Integer, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("new", Integer, nullable=False),
    Column("changed", Integer, nullable=False),
    Column("rejected", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("reason", Text),
    Column("due_at", Timestamp, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp),
    Index("ix_backfills_provider_start", "provider", "start"),
)
Index(
    "ix_backfills_running",
    backfills.c.provider,
    backfills.c.id,
    sqlite_where=backfills.c.state == "running",
    postgresql_where=backfills.c.state == "running",
)

# Intervals are stored as numbers: microseconds since the epoch, or bytes.
coverage = Table(
    "coverage",
    metadata,
    Column("id", Counter, primary_key=True),
    Column("provider", String(100), nullable=False),
    Column("stream", String(100), nullable=False),
    Column("source", Text, nullable=False),
    Column("unit", String(10), nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reason", Text),
    Column("past", Boolean, nullable=False),  # read by a backfill
    Column("pages", Integer, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("new", Integer, nullable=False),
    Column("changed", Integer, nullable=False),
    Column("rejected", Integer, nullable=False),
    Column("started_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp, nullable=False),
    Index("ix_coverage_provider_stream_source_id", "provider", "stream", "source", "id"),
    Index("ix_coverage_finished_at", "finished_at"),
)
Index(
    "ix_coverage_lost",
    coverage.c.provider,
    coverage.c.stream,
    coverage.c.id,
    sqlite_where=coverage.c.outcome == "lost",
    postgresql_where=coverage.c.outcome == "lost",
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("id", Counter, primary_key=True),
    Column("provider", String(100), nullable=False),
    Column("stream", String(100), nullable=False),
    Column("source", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("retried_at", Timestamp),
    Column("retried_by", Text),
    # for a rejected part of a push: what a retry maps, empty if it is too large
    Column("request", LargeBinary),
    Column("received_at", Timestamp),
    Column("request_id", BigInteger),  # the record of the same push that contains the request
)
Index(
    "ix_quarantine_retried_at",
    quarantine.c.retried_at,
    sqlite_where=quarantine.c.retried_at.is_not(None),
    postgresql_where=quarantine.c.retried_at.is_not(None),
)

events = Table(
    "events",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("event_type", String(40), nullable=False),
    Column("timestamp", Timestamp, nullable=False),
    Column("data", Document, nullable=False),
    Column("subject", String(200), nullable=False),
    Column("related", Document, nullable=False),
    Column("context", Document, nullable=False),
    Column("routed", Boolean, nullable=False),
    Column("routing_error", Text),  # why an event that is not routed is on hold
    Column("suppressed_by", String(100)),  # the name of the rule, if any
    Index("ix_events_subject", "subject"),
    Index("ix_events_timestamp", "timestamp"),
)
# Ids commit out of order, so routing queries unrouted events instead of using a watermark.
Index(
    "ix_events_unrouted",
    events.c.id,
    sqlite_where=events.c.routed.is_(False),
    postgresql_where=events.c.routed.is_(False),
)

# Rules that keep events from destinations; kept after their end, since events name them
suppressions = Table(
    "suppressions",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("owner", String(300), nullable=False),
    Column("reason", Text, nullable=False),
    Column("provider", String(100)),
    Column("title", String(300)),  # a pattern
    Column("entity", String(2048)),
    Column("cidr", String(50)),
    Column("created_by", String(300), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("ends_at", Timestamp, nullable=False),
    Column("suppressed_events", BigInteger, nullable=False),
)

# Stops of destinations and providers by a person; at most one of each is in force.
emergency_stops = Table(
    "emergency_stops",
    metadata,
    Column("id", Counter, primary_key=True),
    Column("kind", String(20), nullable=False, info=OWN_WORDS),
    Column("name", String(100), nullable=False, info=OWN_WORDS),
    Column("stopped_by", Text, nullable=False),
    Column("reason", Text),
    Column("started_at", Timestamp, nullable=False),
    Column("ends_at", Timestamp),
    Column("ended_at", Timestamp),
    Column("ended_by", Text),
    Index("ix_emergency_stops_ended_at", "ended_at"),
)
Index(
    "ix_emergency_stops_current",
    emergency_stops.c.kind,
    emergency_stops.c.name,
    unique=True,
    sqlite_where=emergency_stops.c.ended_at.is_(None),
    postgresql_where=emergency_stops.c.ended_at.is_(None),
)

# Destinations. `settings` holds the operator's settings: with references to secrets if they come
# from a file, with encrypted secrets in another column if they come from the API. The last six
# columns hold the health of the receiver.
destinations = Table(
    "destinations",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("plugin", String(100), nullable=False),
    Column("managed_by", String(10), nullable=False),
    Column("settings", Document, nullable=False),
    Column("secrets", LargeBinary, info=ENCRYPTED),
    Column("revision", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", String(40)),
    Column("detail", Text),
    Column("created_by", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("failing_since", Timestamp),
    Column("holds", Integer, nullable=False),
    Column("held_until", Timestamp),
    Column("probing_until", Timestamp),
    Column("free_at", Timestamp),
)

# `schedule_start` is the number of attempts before the current retry schedule started.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("event_id", ForeignKey("events.id"), nullable=False),
    Column("destination", String(100), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("state", String(20), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("schedule_start", Integer, nullable=False),
    Column("due_at", Timestamp, nullable=False),
    Column("lease", String(40)),
    Column("holder", BigInteger),
    Column("remote_id", Text),
    Column("remote_url", Text),
    Column("reason", Text),
    Column("created_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp),
    # The time after which no attempt started, and its value before the current lease: an attempt
    # may leave no other trace
    Column("begun_by", Timestamp),
    Column("begun_before", Timestamp),
    UniqueConstraint("event_id", "destination"),
)
Index(
    "ix_deliveries_due",
    deliveries.c.destination,
    deliveries.c.due_at,
    deliveries.c.id,
    sqlite_where=deliveries.c.state == "pending",
    postgresql_where=deliveries.c.state == "pending",
)
# Supports the order within a subject
Index(
    "ix_deliveries_waiting",
    deliveries.c.destination,
    deliveries.c.subject,
    deliveries.c.id,
    sqlite_where=deliveries.c.state == "pending",
    postgresql_where=deliveries.c.state == "pending",
)
Index(
    "ix_deliveries_leased",
    deliveries.c.holder,
    sqlite_where=deliveries.c.lease.is_not(None),
    postgresql_where=deliveries.c.lease.is_not(None),
)
Index(
    "ix_deliveries_resting",
    deliveries.c.state,
    deliveries.c.id,
    sqlite_where=deliveries.c.state.in_(["dead", "on_hold"]),
    postgresql_where=deliveries.c.state.in_(["dead", "on_hold"]),
)

# The remote objects that deliveries created at destinations, for updates by later events.
remote_objects = Table(
    "remote_objects",
    metadata,
    Column("destination", String(100), primary_key=True),
    Column("subject", String(200), primary_key=True),
    Column("remote_id", Text, nullable=False),
    # The tenant or project of the remote object, as the channel names it; settings may change later
    Column("home", Text, nullable=False),
    Column("event_id", String(40), nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    # What the receiver last reported of the object of an incident: no `status` if the receiver no
    # longer has it. Objects of other subjects have no `status_due_at`, once a reader has seen them.
    Column("incident_number", BigInteger),
    Column("remote_url", Text),
    Column("status", String(200)),
    Column("resolution", String(200)),
    Column("is_open", Boolean),
    Column("status_version", String(200)),
    Column("parent_id", String(200)),  # another object that has the status, such as a case
    Column("status_changed_at", Timestamp),
    Column("status_read_at", Timestamp),
    Column("status_due_at", Timestamp, server_default="0"),
    Column("closed_here_at", Timestamp),  # when Tocsin closed it; null if it is open since
    Column("resolution_due", Boolean),  # whether its last change is to be applied to the incident
    Index("ix_remote_objects_status_due_at", "destination", "status_due_at"),
    # Webhooks name objects by these IDs. Receivers choose the length of `remote_id`, which an index
    # of another type would limit.
    Index("ix_remote_objects_remote_id", "remote_id", postgresql_using="hash"),
)
Index(
    "ix_remote_objects_parent_id",
    remote_objects.c.parent_id,
    sqlite_where=remote_objects.c.parent_id.is_not(None),
    postgresql_where=remote_objects.c.parent_id.is_not(None),
)
Index(
    "ix_remote_objects_resolution_due",
    remote_objects.c.destination,
    sqlite_where=remote_objects.c.resolution_due.is_(True),
    postgresql_where=remote_objects.c.resolution_due.is_(True),
)
# Supports the list of status mismatches
Index(
    "ix_remote_objects_incident_number",
    remote_objects.c.incident_number,
    remote_objects.c.destination,
    sqlite_where=remote_objects.c.incident_number.is_not(None),
    postgresql_where=remote_objects.c.incident_number.is_not(None),
)

# Destinations whose objects' statuses are read: one node reads those of a destination at a time.
status_readers = Table(
    "status_readers",
    metadata,
    Column("destination", String(100), primary_key=True),
    Column("node", BigInteger),
    Column("lease", String(40)),
    Column("leased_until", Timestamp),
    Column("failures", Integer, nullable=False),
    Column("failing_since", Timestamp),
    Column("reason", Text),
    Column("due_at", Timestamp, nullable=False),
    Column("resolving_since", Timestamp),
)

# Bulk replays of deliveries, in batches; `position` is the last delivery handled.
replays = Table(
    "replays",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("filter", Document, nullable=False),
    Column("state", String(20), nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("replayed", BigInteger, nullable=False),
    Column("position", String(40), nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp),
)
Index(
    "ix_replays_running",
    replays.c.id,
    sqlite_where=replays.c.state == "running",
    postgresql_where=replays.c.state == "running",
)

attempts = Table(
    "attempts",
    metadata,
    Column("delivery_id", ForeignKey("deliveries.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("started_at", Timestamp, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("status", Integer),
    Column("reason", Text),
    Column("response", LargeBinary, nullable=False),
)

# `search` holds the searchable words of the record in lower case, one per line.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("key_id", String(16), nullable=False, unique=True),
    Column("prefix", String(32), nullable=False),
    Column("name", String(100), nullable=False),
    Column("description", Text, nullable=False),
    Column("scopes", Document, nullable=False),
    Column("secret_hash", Text, nullable=False),
    Column("previous_hash", Text),
    Column("previous_expires_at", Timestamp),
    Column("created_by", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    Column("last_used_at", Timestamp),
    Column("last_rotated_at", Timestamp),
    Column("disabled_at", Timestamp),
    Column("search", Text, nullable=False),
    # random; triggers renew it with every other column except `last_used_at` and `search`
    Column("row_version", BigInteger, nullable=False, server_default="0"),
)

api_clients = Table(
    "api_clients",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("client_id", String(19), nullable=False, unique=True),
    Column("name", String(100), nullable=False),
    Column("description", Text, nullable=False),
    Column("scopes", Document, nullable=False),
    Column("secret_hash", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("last_used_at", Timestamp),
    Column("disabled_at", Timestamp),
    Column("token_generation", Integer, nullable=False),
    Column("search", Text, nullable=False),
)

revoked_tokens = Table(
    "revoked_tokens",
    metadata,
    Column("jti", String(40), primary_key=True),
    Column("expires_at", Timestamp, nullable=False, index=True),
)

# A key is published before and after it signs, so that verifiers can cache the key set.
signing_keys = Table(
    "signing_keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("purpose", String(20), nullable=False),
    Column("algorithm", String(20), nullable=False),
    Column("public_key", Text, nullable=False),
    Column("private_key", LargeBinary, nullable=False, info=ENCRYPTED),
    Column("created_at", Timestamp, nullable=False),
    Column("signs_from", Timestamp, nullable=False),
    Column("retires_at", Timestamp),
    Index("ix_signing_keys_purpose_signs_from", "purpose", "signs_from"),
)

# The encryption key of this database and the earlier ones, by IDs that reveal nothing. `remaining`
# counts the values that still need an earlier key. The current one is leased by the node that
# encrypts them again.
encryption_keys = Table(
    "encryption_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("state", String(10), nullable=False),
    Column("started_at", Timestamp, nullable=False),
    Column("retired_at", Timestamp),
    Column("remaining", BigInteger),
    Column("node", BigInteger),
    Column("lease", String(40)),
    Column("leased_until", Timestamp),
)

# What was derived from the first encryption key, and stays when the key changes.
derived_keys = Table(
    "derived_keys",
    metadata,
    Column("purpose", String(40), primary_key=True),
    Column("content", LargeBinary, nullable=False, info=ENCRYPTED),
)

# Investigations. `run` counts the questions: 1 for the query, one more for each follow-up. `report`
# belongs to the last completed run.
sessions = Table(
    "sessions",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("status", String(20), nullable=False),
    Column("query", Text, nullable=False),
    Column("persona", String(20), nullable=False),
    Column("provider", String(100)),
    Column("schedule_id", String(40)),
    Column("run", Integer, nullable=False),
    Column("timeout_ms", BigInteger, nullable=False),
    Column("progress", Document, nullable=False),
    Column("error", Text),
    Column("title", Text),
    Column("verdict", String(20)),
    Column("confidence", String(20)),
    Column("risk_score", Float),
    Column("finding_count", Integer),
    Column("entity_count", Integer),
    Column("report", Document),
    Column("created_by", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("asked_at", Timestamp, nullable=False),
    Column("started_at", Timestamp),
    Column("completed_at", Timestamp),
    Column("attempts", Integer, nullable=False),  # how many nodes have taken this run up
    Column("node", BigInteger),
    Column("lease", String(40)),
    Column("leased_until", Timestamp),
    Index("ix_sessions_status_id", "status", "id"),
    Index("ix_sessions_provider_id", "provider", "id"),
    Index("ix_sessions_schedule_id_id", "schedule_id", "id"),
)

session_messages = Table(
    "session_messages",
    metadata,
    Column("session_id", ForeignKey("sessions.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("run", Integer, nullable=False),
    Column("role", String(20), nullable=False),  # user or investigator
    Column("text", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
)

# The ledger: each question of an investigation with its answer, and each conclusion. Numbers
# continue across runs. The steps of a run that has ended are in chunks, each a row with the number
# and the columns of its last step.
session_steps = Table(
    "session_steps",
    metadata,
    Column("session_id", ForeignKey("sessions.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("run", Integer, nullable=False),
    Column("phase", String(20), nullable=False),
    Column("kind", String(40), nullable=False),  # the kind of question, or `conclusion`
    Column("asked_of", String(200)),  # null for a conclusion, as are the next two
    Column("question", Text),  # JSON, to the letter: what is repeated must read the same
    Column("outcome", String(20)),
    Column("answer", Text),
    # Question and answer, compressed; in rows from before there was this column, those above
    Column("packed", LargeBinary),
    Column("base", Integer),  # the number of the step that serves as dictionary
    Column("chunk", LargeBinary),  # the steps, compressed together
    Column("steps", Integer),  # how many the chunk has; null for a single step
    Column("reason", Text),
    Column("conclusion", Text),
    Column("evidence", Document),
    Column("started_at", Timestamp, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("elapsed_ms", BigInteger, nullable=False),  # since the run began, without interruptions
)

# Schedules of recurring investigations. `next_fire_at` identifies the next run, which is due at
# `next_run_at` with its jitter; both are null where none follows. Intervals count from `anchor_at`.
schedules = Table(
    "schedules",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(100), nullable=False),
    Column("managed_by", String(10), nullable=False),
    Column("definition", Document, nullable=False),
    Column("tags", Text, nullable=False),  # of the definition, to search in: `|night|vpn|`
    Column("status", String(20), nullable=False),  # active, disabled or deleted
    Column("disabled_reason", String(30)),
    Column("revision", Integer, nullable=False),
    Column("anchor_at", Timestamp, nullable=False),
    Column("next_fire_at", Timestamp),
    Column("next_run_at", Timestamp),
    Column("consecutive_failures", Integer, nullable=False),
    Column("last_run_at", Timestamp),
    Column("last_status", String(20)),
    Column("last_error", Text),
    Column("created_by", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Index("ix_schedules_status_name", "status", "name"),
    Index("ix_schedules_next_run_at", "next_run_at"),
)
IS_THERE = schedules.c.status != literal_column("'deleted'")
Index(
    "uq_schedules_name",
    schedules.c.name,
    unique=True,
    sqlite_where=IS_THERE,
    postgresql_where=IS_THERE,
)

# One row per fire time that was run or skipped, and per manual run; consecutive missed fire times
# share one row, with their `count` and the last of them in `until`.
schedule_runs = Table(
    "schedule_runs",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("schedule_id", ForeignKey("schedules.id"), nullable=False),
    Column("trigger", String(10), nullable=False),  # clock or manual
    Column("fire_at", Timestamp, nullable=False),
    Column("due_at", Timestamp, nullable=False),
    Column("state", String(20), nullable=False),
    Column("count", Integer, nullable=False),
    Column("until", Timestamp),
    Column("session_id", String(40), unique=True),
    Column("started_at", Timestamp),
    Column("begin_by", Timestamp),  # when it fails, unless a node has taken its session up
    Column("ended_at", Timestamp),
    Column("cause", String(20)),
    Column("reason", Text),
    Column("created_by", Text, nullable=False),
    Index("ix_schedule_runs_schedule_id_id", "schedule_id", "id"),
)
# A literal, since the databases use a partial index only where its condition is literal
IS_BY_CLOCK = schedule_runs.c.trigger == literal_column("'clock'")
IS_UNENDED = schedule_runs.c.state.in_((literal_column("'running'"), literal_column("'waiting'")))
Index(
    "uq_schedule_runs_fire_at",
    schedule_runs.c.schedule_id,
    schedule_runs.c.fire_at,
    unique=True,
    sqlite_where=IS_BY_CLOCK,
    postgresql_where=IS_BY_CLOCK,
)
Index(
    "ix_schedule_runs_unended",
    schedule_runs.c.schedule_id,
    schedule_runs.c.id,
    sqlite_where=IS_UNENDED,
    postgresql_where=IS_UNENDED,
)

# Closures of incidents at their SIEMs after people closed their tickets, one for each incident
siem_closures = Table(
    "siem_closures",
    metadata,
    Column("incident_number", BigInteger, primary_key=True, autoincrement=False),
    Column("provider", String(100), nullable=False, info=OWN_WORDS),
    Column("external_id", String(500), nullable=False),
    Column("destination", String(100), nullable=False, info=OWN_WORDS),
    Column("ticket", Text, nullable=False),
    Column("state", String(20), nullable=False, info=OWN_WORDS),
    Column("failures", Integer, nullable=False),
    Column("reason", Text),
    Column("due_at", Timestamp, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp),
    Index("ix_siem_closures_created_at", "created_at"),
)
Index(
    "ix_siem_closures_due",
    siem_closures.c.provider,
    siem_closures.c.due_at,
    sqlite_where=siem_closures.c.state == "pending",
    postgresql_where=siem_closures.c.state == "pending",
)

# Comments to write to incidents in their SIEMs
write_backs = Table(
    "write_backs",
    metadata,
    Column("session_id", ForeignKey("sessions.id"), primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("incident_number", ForeignKey("incidents.number"), primary_key=True),
    Column("provider", String(100), nullable=False),
    Column("external_id", String(500), nullable=False),
    Column("text", Text, nullable=False),
    Column("state", String(20), nullable=False),  # pending, written or failed
    Column("attempts", Integer, nullable=False),
    Column("failures", Integer, nullable=False),  # attempts that count towards giving up
    Column("reason", Text),
    Column("due_at", Timestamp, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp),
)
Index(
    "ix_write_backs_due",
    write_backs.c.provider,
    write_backs.c.due_at,
    sqlite_where=write_backs.c.state == "pending",
    postgresql_where=write_backs.c.state == "pending",
)

# The latest enrichments of an entity; for online enrichers with an expiry.
enrichments = Table(
    "enrichments",
    metadata,
    Column("enricher", String(100), primary_key=True),
    Column("kind", String(20), primary_key=True),
    Column("value", String(2048), primary_key=True),
    Column("content", Document),  # null where nothing is known
    Column("fetched_at", Timestamp, nullable=False),
    Column("changed_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp),
)

# The edges of the graph beyond those that incidents imply (incident_entities, incident_techniques,
# merged_into). The sources of a relation are its evidence.
relations = Table(
    "relations",
    metadata,
    Column("id", Counter, primary_key=True),
    Column("source_kind", String(20), nullable=False),
    Column("source_value", String(2048), nullable=False),
    Column("type", String(20), nullable=False),
    Column("target_kind", String(20), nullable=False),
    Column("target_value", String(2048), nullable=False),
    Column("first_seen", Timestamp, nullable=False),
    Column("last_seen", Timestamp, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("tlp", Integer, nullable=False),  # the ranks of its marking
    Column("pap", Integer, nullable=False),
    Column("digest", String(64), nullable=False, unique=True),  # of what it relates, and how
    Index("ix_relations_source_value_source_kind_id", "source_value", "source_kind", "id"),
    Index("ix_relations_target_value_target_kind_id", "target_value", "target_kind", "id"),
    Index("ix_relations_type", "type"),
)
# Markings above amber; a literal, since the databases use a partial index only for literals
IS_STRICT = or_(relations.c.tlp > literal_column("2"), relations.c.pap > literal_column("2"))
for _end in ("source", "target"):
    Index(
        f"ix_relations_strict_{_end}",
        relations.c[f"{_end}_value"],
        relations.c[f"{_end}_kind"],
        relations.c.tlp,
        relations.c.pap,
        sqlite_where=IS_STRICT,
        postgresql_where=IS_STRICT,
    )

relation_sources = Table(
    "relation_sources",
    metadata,
    Column("relation_id", ForeignKey("relations.id"), primary_key=True),
    Column("source", String(200), primary_key=True),
    Column("at", Timestamp, nullable=False),
)

# Search documents, one per incident and per session; a higher id was indexed later. `tokens` holds
# the search tokens, created in Python for both databases: on PostgreSQL it has an index, on SQLite
# triggers maintain the FTS5 table `documents_index` (see the migration).
documents = Table(
    "documents",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("record", String(40), nullable=False),  # an incident's number, a session's id
    Column("at", Timestamp, nullable=False),
    Column("change", BigInteger),  # the incident's, as it was indexed
    Column("title", Text, nullable=False),
    Column("entities", Text, nullable=False),  # as tokens, for ranking
    Column("text", Text, nullable=False),
    Column("tokens", Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
    UniqueConstraint("kind", "record"),
    Index(
        "ix_documents_tokens",
        "tokens",
        postgresql_using="gin",
        # changes wait in a list of at most 256 kB, which a search reads to its end
        postgresql_with={"fastupdate": "on", "gin_pending_list_limit": 256},
    ).ddl_if(dialect="postgresql"),
)

# One row per entity of an indexed incident.
entities = Table(
    "entities",
    metadata,
    Column("kind", String(20), primary_key=True),
    Column("value", String(2048), primary_key=True),
    Column("incident_count", BigInteger, nullable=False),
    Column("first_seen", Timestamp, nullable=False),
    Column("last_seen", Timestamp, nullable=False),
    Column("last_incident", BigInteger, nullable=False),
)

# The providers of the indexed incidents with an entity.
entity_providers = Table(
    "entity_providers",
    metadata,
    Column("kind", String(20), primary_key=True),
    Column("value", String(2048), primary_key=True),
    Column("provider", String(100), primary_key=True),
)

# Lookup names of entities: the value in lower case and its meaningful parts, such as the parents of
# a domain. Names sort by their bytes on both databases.
entity_names = Table(
    "entity_names",
    metadata,
    Column("name", String(100).with_variant(String(100, "C"), "postgresql"), primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),  # 0 for the whole value
    Column("kind", String(20), primary_key=True),
    Column("value", String(2048), primary_key=True),
)

# Append-only; triggers refuse every change except setting the seal.
audit = Table(
    "audit",
    metadata,
    Column("id", Counter, primary_key=True),
    Column("at", Timestamp, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", String(60), nullable=False),
    Column("target", Text),
    Column("address", String(60), nullable=False),
    Column("request_id", String(128), nullable=False),
    Column("count", Integer, nullable=False),
    Column("details", Document, nullable=False),
    Column("position", BigInteger, unique=True),
    Column("seal", String(64)),
    Index("ix_audit_action_id", "action", "id"),
)
Index(
    "ix_audit_unsealed",
    audit.c.id,
    sqlite_where=audit.c.position.is_(None),
    postgresql_where=audit.c.position.is_(None),
)

# The end of what retention removed from the audit log, with the seal of its last entry. `proof` is
# keyed, so only the service can cut. Triggers refuse to remove entries beyond it.
audit_cuts = Table(
    "audit_cuts",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("seal", String(64), nullable=False),
    Column("at", Timestamp, nullable=False),
    Column("proof", String(64), nullable=False),
)

# Entries whose content was changed to erase a person's data. `proof` is keyed, of the entry as it
# is since, and of its seal. Triggers refuse to change other entries.
audit_redactions = Table(
    "audit_redactions",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("proof", String(64), nullable=False),
)

# Erased values: what they were replaced by, and a keyed digest by which they are recognized.
erasures = Table(
    "erasures",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("length", Integer, nullable=False),  # of the value, in characters
    Column("pseudonym", String(200), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("receipt", Document, nullable=False),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("caller", String(300), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("content", Document),  # null where the answer carried a secret
    Column("record", Text),
    Column("created_at", Timestamp, nullable=False, index=True),
)

# The requests that each node has admitted since its start, for the rate limits of other nodes.
rate_usage = Table(
    "rate_usage",
    metadata,
    Column("limit", String(20), primary_key=True),
    Column("key", String(300), primary_key=True),
    Column("node", String(40), primary_key=True),
    Column("used", BigInteger, nullable=False),
    Column("updated_at", Timestamp, nullable=False, index=True),
)

console_sessions = Table(
    "console_sessions",
    metadata,
    Column("digest", String(64), primary_key=True),  # of what the cookie holds
    Column("principal", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", String(10), nullable=False),
    Column("begun_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False, index=True),
    # The rest only for sessions of an issuer
    Column("sid", Text),  # of the session there
    # How to ask the issuer again
    Column("sealed_grant", Text, info={"encrypted": GRANT_PURPOSE}),
    Column("check_at", Timestamp),
    Column("valid_until", Timestamp),  # unless a check succeeds before
    # For the list of a person's sessions; null if an earlier version began the session
    Column("id", String(40)),
    Column("address", Text),
    Column("browser", Text),  # the header User-Agent
    Column("used_at", Timestamp),
)

sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("digest", String(64), primary_key=True),  # of the code in the link
    Column("name", Text, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
)

# People who sign in with passkeys
people = Table(
    "people",
    metadata,
    Column("id", String(40), primary_key=True),  # the user handle of the person's passkeys
    Column("name", String(100), nullable=False, unique=True),
    Column("role", String(10), nullable=False),
    Column("created_by", String(300), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("disabled_at", Timestamp),
)

passkeys = Table(
    "passkeys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column(
        "person_id",
        String(40),
        ForeignKey("people.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("credential_id", Text, nullable=False, unique=True),  # in base64url
    Column("public_key", LargeBinary, nullable=False),  # a COSE key (RFC 9052 section 7)
    Column("sign_count", BigInteger, nullable=False),
    Column("label", String(100), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("last_used_at", Timestamp),
)

passkey_links = Table(
    "passkey_links",
    metadata,
    Column("digest", String(64), primary_key=True),  # of the code in the link
    Column(
        "person_id",
        String(40),
        ForeignKey("people.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("expires_at", Timestamp, nullable=False),
)

# Filters of the incident list that a user of the console saved; of every kind of principal, so
# that no foreign key removes those of a deleted person.
saved_views = Table(
    "saved_views",
    metadata,
    Column("owner", Text, primary_key=True),  # the principal of the user's sessions
    Column("name", String(40), primary_key=True),
    Column("filters", Text, nullable=False),  # JSON, in the order of the query
    Column("changed_at", Timestamp, nullable=False),
)

# Challenges that a passkey has signed, until they expire
used_challenges = Table(
    "used_challenges",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("expires_at", Timestamp, nullable=False),
)
