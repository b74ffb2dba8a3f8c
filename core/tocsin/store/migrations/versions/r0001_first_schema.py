"""The first schema: incidents with their ledger, events with their deliveries, credentials."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("key_id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("scopes", DOCUMENT, nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("expires_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("key_id", name="uq_api_keys_key_id"),
    )
    op.create_table(
        "coverage",
        sa.Column("id", COUNTER, nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("stream", sa.String(length=100), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("unit", sa.String(length=10), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("new", sa.Integer(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("rejected", sa.Integer(), nullable=False),
        sa.Column("started_at", MOMENT(), nullable=False),
        sa.Column("finished_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_coverage"),
    )
    op.create_index(
        "ix_coverage_provider_stream_source_id", "coverage", ["provider", "stream", "source", "id"]
    )
    op.create_table(
        "events",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("event_type", sa.String(length=40), nullable=False),
        sa.Column("timestamp", MOMENT(), nullable=False),
        sa.Column("data", DOCUMENT, nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("related", DOCUMENT, nullable=False),
        sa.Column("context", DOCUMENT, nullable=False),
        sa.Column("routed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    op.create_index("ix_events_subject", "events", ["subject"])
    op.create_index(
        "ix_events_unrouted",
        "events",
        ["id"],
        sqlite_where=sa.text("routed IS 0"),
        postgresql_where=sa.text("routed IS false"),
    )
    op.create_table(
        "quarantine",
        sa.Column("id", COUNTER, nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("stream", sa.String(length=100), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_quarantine"),
    )
    op.create_table(
        "sequences",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sequences"),
    )
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("purpose", sa.String(length=20), nullable=False),
        sa.Column("private_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_signing_keys"),
        sa.UniqueConstraint("purpose", name="uq_signing_keys_purpose"),
    )
    op.create_table(
        "stream_positions",
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("stream", sa.String(length=100), nullable=False),
        sa.Column("position", DOCUMENT, nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("first_read_done", sa.Boolean(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("provider", "stream", name="pk_stream_positions"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("event_id", sa.String(length=40), nullable=False),
        sa.Column("destination", sa.String(length=100), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", MOMENT(), nullable=False),
        sa.Column("lease", sa.String(length=40), nullable=True),
        sa.Column("remote_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("finished_at", MOMENT(), nullable=True),
        sa.ForeignKeyConstraint(["event_id"], ["events.id"], name="fk_deliveries_event_id"),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("event_id", "destination", name="uq_deliveries_event_id_destination"),
    )
    op.create_index("ix_deliveries_destination_subject", "deliveries", ["destination", "subject"])
    op.create_index(
        "ix_deliveries_due",
        "deliveries",
        ["destination", "due_at", "id"],
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_table(
        "incidents",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("external_id", sa.String(length=500), nullable=False),
        sa.Column("external_number", sa.String(length=200), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("severity", sa.String(length=20), nullable=False),
        sa.Column("raw_severity", sa.String(length=200), nullable=True),
        sa.Column("severity_assumed", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("raw_status", sa.String(length=200), nullable=True),
        sa.Column("merged_into", sa.String(length=500), nullable=True),
        sa.Column("source_url", sa.Text(), nullable=True),
        sa.Column("techniques", DOCUMENT, nullable=False),
        sa.Column("occurred_at", MOMENT(), nullable=False),
        sa.Column("source_changed_at", MOMENT(), nullable=True),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.Column("change", sa.BigInteger(), nullable=False),
        sa.Column("alert_outcome", sa.String(length=20), nullable=False),
        sa.Column("alert_count", sa.Integer(), nullable=False),
        sa.Column("coverage_id", COUNTER, nullable=False),
        sa.ForeignKeyConstraint(["coverage_id"], ["coverage.id"], name="fk_incidents_coverage_id"),
        sa.PrimaryKeyConstraint("number", name="pk_incidents"),
        sa.UniqueConstraint("change", name="uq_incidents_change"),
        sa.UniqueConstraint("provider", "external_id", name="uq_incidents_provider_external_id"),
    )
    op.create_index("ix_incidents_severity_change", "incidents", ["severity", "change"])
    op.create_index("ix_incidents_status_change", "incidents", ["status", "change"])
    op.create_index(
        "ix_incidents_severity_status_change", "incidents", ["severity", "status", "change"]
    )
    op.create_index("ix_incidents_updated_at", "incidents", ["updated_at", "change"])
    op.create_table(
        "attempts",
        sa.Column("delivery_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("started_at", MOMENT(), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("response", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["delivery_id"], ["deliveries.id"], name="fk_attempts_delivery_id"),
        sa.PrimaryKeyConstraint("delivery_id", "number", name="pk_attempts"),
    )
    op.create_table(
        "incident_alerts",
        sa.Column("incident_number", sa.BigInteger(), nullable=False),
        sa.Column("external_id", sa.String(length=200), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("severity", sa.String(length=20), nullable=False),
        sa.Column("occurred_at", MOMENT(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name="fk_incident_alerts_incident_number"
        ),
        sa.PrimaryKeyConstraint("incident_number", "external_id", name="pk_incident_alerts"),
    )
    op.create_table(
        "incident_entities",
        sa.Column("incident_number", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("value", sa.String(length=2048), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name="fk_incident_entities_incident_number"
        ),
        sa.PrimaryKeyConstraint("incident_number", "kind", "value", name="pk_incident_entities"),
    )
    op.create_index("ix_incident_entities_value_kind", "incident_entities", ["value", "kind"])
    sequences = sa.table("sequences", sa.column("name"), sa.column("value"))
    names = ("incident_number", "incident_change")
    op.bulk_insert(sequences, [{"name": name, "value": 0} for name in names])
