"""When and by whom a quarantined record was retried.

Nodes of 0048 work with it: they show no retries.
"""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.add_column("quarantine", sa.Column("retried_at", sa.BigInteger(), nullable=True))
    op.add_column("quarantine", sa.Column("retried_by", sa.Text(), nullable=True))
