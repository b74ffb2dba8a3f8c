"""Compressed steps of investigations."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("session_steps", sa.Column("packed", sa.LargeBinary(), nullable=True))
    op.add_column("session_steps", sa.Column("base", sa.Integer(), nullable=True))
