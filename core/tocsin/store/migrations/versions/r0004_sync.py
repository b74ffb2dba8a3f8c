"""Sync in full: leases and standings of providers, re-reads, backfills."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
MOMENT = sa.BigInteger


def upgrade() -> None:
    of_now = sa.false()
    past: sa.Column[bool] = sa.Column("past", sa.Boolean(), nullable=False, server_default=of_now)
    with op.batch_alter_table("coverage") as coverage:
        coverage.add_column(past)
    with op.batch_alter_table("coverage") as coverage:
        coverage.alter_column("past", server_default=None)
    lost = sa.text("outcome = 'lost'")
    op.create_index(
        "ix_coverage_lost",
        "coverage",
        ["provider", "stream", "id"],
        sqlite_where=lost,
        postgresql_where=lost,
    )
    op.add_column("stream_positions", sa.Column("covered_until", MOMENT(), nullable=True))
    _create_providers()
    _create_rereads()
    _create_backfills()


def _create_providers() -> None:
    op.create_table(
        "providers",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("plugin", sa.String(length=100), nullable=False),
        sa.Column("poll_ms", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.BigInteger(), nullable=True),
        sa.Column("lease", sa.String(length=40), nullable=True),
        sa.Column("leased_until", MOMENT(), nullable=True),
        sa.Column("read_at", MOMENT(), nullable=True),
        sa.Column("succeeded_at", MOMENT(), nullable=True),
        sa.Column("failing_since", MOMENT(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("next_read_at", MOMENT(), nullable=True),
        sa.Column("clock_skew_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_providers"),
    )


def _create_rereads() -> None:
    op.create_table(
        "rereads",
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("external_id", sa.String(length=500), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("due_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("provider", "external_id", name="pk_rereads"),
    )
    op.create_index("ix_rereads_provider_due_at", "rereads", ["provider", "due_at"])


def _create_backfills() -> None:
    op.create_table(
        "backfills",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("start", MOMENT(), nullable=False),
        sa.Column("end", MOMENT(), nullable=False),
        sa.Column("origin", sa.String(length=20), nullable=False),
        sa.Column("alert", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("positions", DOCUMENT, nullable=False),
        sa.Column("reached", MOMENT(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("new", sa.Integer(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("rejected", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("due_at", MOMENT(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.Column("finished_at", MOMENT(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_backfills"),
    )
    op.create_index("ix_backfills_provider_start", "backfills", ["provider", "start"])
    running = sa.text("state = 'running'")
    op.create_index(
        "ix_backfills_running",
        "backfills",
        ["provider", "id"],
        sqlite_where=running,
        postgresql_where=running,
    )
