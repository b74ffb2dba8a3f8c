"""Positions of the intake, which accepts pushes before they are stored.

Nodes of 0031 work with it: they do not know the table.
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.create_table(
        "intake_positions",
        sa.Column("provider", sa.String(100), nullable=False),
        sa.Column("stream", sa.String(100), nullable=False),
        sa.Column("stored", sa.BigInteger(), nullable=False),
        sa.Column("accepted", sa.BigInteger(), nullable=False),
        sa.Column("waiting_since", sa.BigInteger(), nullable=True),
        sa.Column("node", sa.BigInteger(), nullable=True),
        sa.Column("lease", sa.String(40), nullable=True),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("provider", name="pk_intake_positions"),
    )
