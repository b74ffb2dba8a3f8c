"""Marks of what callers wrote, and beats of the nodes, which replicas are compared by.

Nodes of 0034 work with it: they do not mark their writes, and reads then stay on the primary.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.create_table(
        "write_marks",
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("place", name="pk_write_marks"),
    )
    op.add_column("nodes", sa.Column("replica_beat", sa.BigInteger(), nullable=True))
