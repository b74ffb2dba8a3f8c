"""ID, address, browser and last use of console sessions.

Nodes of 0039 work with it: their sessions have none of these until the next use.
"""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    columns = (
        sa.Column("id", sa.String(length=40), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("browser", sa.Text(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
    )
    for column in columns:
        op.add_column("console_sessions", column)
