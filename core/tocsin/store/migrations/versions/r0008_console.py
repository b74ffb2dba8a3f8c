"""The console."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

MOMENT = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "console_sessions",
        sa.Column("digest", sa.String(length=64), primary_key=True),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("begun_at", MOMENT(), nullable=False),
        sa.Column("expires_at", MOMENT(), nullable=False, index=True),
    )
