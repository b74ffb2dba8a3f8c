"""Saved views of the incident list.

Nodes of 0046 work with it: they keep views in a cookie, which newer nodes ignore.
"""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.create_table(
        "saved_views",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("filters", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", name="pk_saved_views"),
    )
