"""Compressed steps of investigations.

Nodes of 0018 work with it: they show compressed steps without question and answer, and ask again
what an investigation that they take over had asked.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
compatible_with = "0018"


def upgrade() -> None:
    op.add_column("session_steps", sa.Column("packed", sa.LargeBinary(), nullable=True))
    op.add_column("session_steps", sa.Column("base", sa.Integer(), nullable=True))
