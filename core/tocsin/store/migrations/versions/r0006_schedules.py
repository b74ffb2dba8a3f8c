"""Schedules."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
MOMENT = sa.BigInteger


def upgrade() -> None:
    _create_schedules()
    _create_runs()


def _create_schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("managed_by", sa.String(length=10), nullable=False),
        sa.Column("definition", DOCUMENT, nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("disabled_reason", sa.String(length=30), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("anchor_at", MOMENT(), nullable=False),
        sa.Column("next_fire_at", MOMENT(), nullable=True),
        sa.Column("next_run_at", MOMENT(), nullable=True),
        sa.Column("consecutive_failures", sa.Integer(), nullable=False),
        sa.Column("last_run_at", MOMENT(), nullable=True),
        sa.Column("last_status", sa.String(length=20), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_schedules"),
    )
    op.create_index("ix_schedules_status_name", "schedules", ["status", "name"])
    op.create_index("ix_schedules_next_run_at", "schedules", ["next_run_at"])
    is_there = sa.text("status != 'deleted'")
    op.create_index(
        "uq_schedules_name",
        "schedules",
        ["name"],
        unique=True,
        sqlite_where=is_there,
        postgresql_where=is_there,
    )


def _create_runs() -> None:
    op.create_table(
        "schedule_runs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("schedule_id", sa.String(length=40), nullable=False),
        sa.Column("trigger", sa.String(length=10), nullable=False),
        sa.Column("fire_at", MOMENT(), nullable=False),
        sa.Column("due_at", MOMENT(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("until", MOMENT(), nullable=True),
        sa.Column("session_id", sa.String(length=40), nullable=True),
        sa.Column("started_at", MOMENT(), nullable=True),
        sa.Column("begin_by", MOMENT(), nullable=True),
        sa.Column("ended_at", MOMENT(), nullable=True),
        sa.Column("cause", sa.String(length=20), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name="fk_schedule_runs_schedule_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_schedule_runs"),
        sa.UniqueConstraint("session_id", name="uq_schedule_runs_session_id"),
    )
    op.create_index("ix_schedule_runs_schedule_id_id", "schedule_runs", ["schedule_id", "id"])
    by_clock = sa.text("trigger = 'clock'")
    op.create_index(
        "uq_schedule_runs_fire_at",
        "schedule_runs",
        ["schedule_id", "fire_at"],
        unique=True,
        sqlite_where=by_clock,
        postgresql_where=by_clock,
    )
    unended = sa.text("state IN ('running', 'waiting')")
    op.create_index(
        "ix_schedule_runs_unended",
        "schedule_runs",
        ["schedule_id", "id"],
        sqlite_where=unended,
        postgresql_where=unended,
    )
