"""Delivery in full: destinations, what rests and what is held, remote objects, replays."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
MOMENT = sa.BigInteger


def upgrade() -> None:
    op.create_index("ix_events_timestamp", "events", ["timestamp"])
    op.create_index("ix_coverage_finished_at", "coverage", ["finished_at"])
    _create_destinations()
    _create_remote_objects()
    _extend_deliveries()
    _create_replays()


def _create_destinations() -> None:
    op.create_table(
        "destinations",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("plugin", sa.String(length=100), nullable=False),
        sa.Column("managed_by", sa.String(length=10), nullable=False),
        sa.Column("settings", DOCUMENT, nullable=False),
        sa.Column("secrets", sa.LargeBinary(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", MOMENT(), nullable=True),
        sa.Column("holds", sa.Integer(), nullable=False),
        sa.Column("held_until", MOMENT(), nullable=True),
        sa.Column("probing_until", MOMENT(), nullable=True),
        sa.Column("free_at", MOMENT(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_destinations"),
    )


def _create_remote_objects() -> None:
    op.create_table(
        "remote_objects",
        sa.Column("destination", sa.String(length=100), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("remote_id", sa.Text(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("destination", "subject", name="pk_remote_objects"),
    )
    # the newest that each destination has of each subject
    op.execute(
        "INSERT INTO remote_objects (destination, subject, remote_id, updated_at) "
        "SELECT destination, subject, remote_id, finished_at FROM deliveries AS d "
        "WHERE remote_id IS NOT NULL AND finished_at IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM deliveries AS later WHERE later.destination = d.destination "
        "AND later.subject = d.subject AND later.remote_id IS NOT NULL "
        "AND (later.finished_at, later.id) > (d.finished_at, d.id))"
    )


def _extend_deliveries() -> None:
    op.add_column(
        "deliveries", sa.Column("schedule_start", sa.Integer(), nullable=False, server_default="0")
    )
    op.add_column("deliveries", sa.Column("holder", sa.BigInteger(), nullable=True))
    # what was under way has no holder that could be asked for
    op.execute("UPDATE deliveries SET lease = NULL WHERE lease IS NOT NULL")
    op.drop_index("ix_deliveries_destination_subject", table_name="deliveries")
    pending = sa.text("state = 'pending'")
    leased = sa.text("lease IS NOT NULL")
    resting = sa.text("state IN ('dead', 'parked')")
    for name, columns, condition in (
        ("ix_deliveries_waiting", ["destination", "subject", "id"], pending),
        ("ix_deliveries_leased", ["holder"], leased),
        ("ix_deliveries_resting", ["state", "id"], resting),
    ):
        op.create_index(
            name, "deliveries", columns, sqlite_where=condition, postgresql_where=condition
        )


def _create_replays() -> None:
    op.create_table(
        "replays",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("filter", DOCUMENT, nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("replayed", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.String(length=40), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.Column("finished_at", MOMENT(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_replays"),
    )
    running = sa.text("state = 'running'")
    op.create_index(
        "ix_replays_running", "replays", ["id"], sqlite_where=running, postgresql_where=running
    )
