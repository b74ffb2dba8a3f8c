"""Closures of incidents at their SIEMs.

Nodes of 0038 work with it: they close no incidents.
"""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.create_table(
        "siem_closures",
        sa.Column("incident_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("external_id", sa.String(length=500), nullable=False),
        sa.Column("destination", sa.String(length=100), nullable=False),
        sa.Column("ticket", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("incident_number", name="pk_siem_closures"),
    )
    is_pending = sa.text("state = 'pending'")
    op.create_index(
        "ix_siem_closures_due",
        "siem_closures",
        ["provider", "due_at"],
        sqlite_where=is_pending,
        postgresql_where=is_pending,
    )
    op.create_index("ix_siem_closures_created_at", "siem_closures", ["created_at"])
