"""Emergency stops of destinations and providers.

Nodes of 0035 work with it: they read stopped providers, and enable no destination at its time.
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "emergency_stops",
        sa.Column("id", number, nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("stopped_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ends_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_emergency_stops"),
    )
    op.create_index("ix_emergency_stops_ended_at", "emergency_stops", ["ended_at"])
    is_current = sa.text("ended_at IS NULL")
    op.create_index(
        "ix_emergency_stops_current",
        "emergency_stops",
        ["kind", "name"],
        unique=True,
        sqlite_where=is_current,
        postgresql_where=is_current,
    )
