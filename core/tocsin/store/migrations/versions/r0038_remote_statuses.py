"""Statuses of the objects that Tocsin keeps at receivers, and their readers.

Nodes of 0037 work with it: they read no statuses.
"""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    for column in (
        sa.Column("incident_number", sa.BigInteger(), nullable=True),
        sa.Column("remote_url", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=200), nullable=True),
        sa.Column("resolution", sa.String(length=200), nullable=True),
        sa.Column("is_open", sa.Boolean(), nullable=True),
        sa.Column("status_version", sa.String(length=200), nullable=True),
        sa.Column("status_changed_at", sa.BigInteger(), nullable=True),
        sa.Column("status_read_at", sa.BigInteger(), nullable=True),
        sa.Column("status_due_at", sa.BigInteger(), nullable=True, server_default="0"),
        sa.Column("closed_here_at", sa.BigInteger(), nullable=True),
        sa.Column("resolution_due", sa.Boolean(), nullable=True),
    ):
        op.add_column("remote_objects", column)
    op.create_index(
        "ix_remote_objects_status_due_at", "remote_objects", ["destination", "status_due_at"]
    )
    op.create_index(
        "ix_remote_objects_resolution_due",
        "remote_objects",
        ["destination"],
        sqlite_where=sa.text("resolution_due IS 1"),
        postgresql_where=sa.text("resolution_due IS true"),
    )
    is_incident = sa.text("incident_number IS NOT NULL")
    op.create_index(
        "ix_remote_objects_incident_number",
        "remote_objects",
        ["incident_number", "destination"],
        sqlite_where=is_incident,
        postgresql_where=is_incident,
    )
    op.create_table(
        "status_readers",
        sa.Column("destination", sa.String(length=100), nullable=False),
        sa.Column("node", sa.BigInteger(), nullable=True),
        sa.Column("lease", sa.String(length=40), nullable=True),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("resolving_since", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("destination", name="pk_status_readers"),
    )
