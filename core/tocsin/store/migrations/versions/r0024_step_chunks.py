"""Chunks of steps of investigations that have ended.

Nodes of 0022 work with it: of a chunk, they show the last step alone, without question and answer.
Use erasure and the archive of investigations once all nodes are upgraded.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.add_column("session_steps", sa.Column("chunk", sa.LargeBinary(), nullable=True))
    op.add_column("session_steps", sa.Column("steps", sa.Integer(), nullable=True))
