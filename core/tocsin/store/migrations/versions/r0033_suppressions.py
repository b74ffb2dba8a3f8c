"""Suppression rules, and the rule that suppressed an event.

Nodes of 0032 work with it: they deliver events that a rule matches.
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.create_table(
        "suppressions",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("owner", sa.String(length=300), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=True),
        sa.Column("title", sa.String(length=300), nullable=True),
        sa.Column("entity", sa.String(length=2048), nullable=True),
        sa.Column("cidr", sa.String(length=50), nullable=True),
        sa.Column("created_by", sa.String(length=300), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ends_at", sa.BigInteger(), nullable=False),
        sa.Column("suppressed_events", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_suppressions"),
    )
    op.add_column("events", sa.Column("suppressed_by", sa.String(length=100), nullable=True))
