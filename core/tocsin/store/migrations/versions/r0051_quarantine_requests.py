"""The requests of rejected incidents, for their retries, and when pushes were received and retried.

Nodes of 0050 work with it: they store no requests, so their records of single incidents are not
retried.
"""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.add_column("quarantine", sa.Column("request", sa.LargeBinary(), nullable=True))
    op.add_column("quarantine", sa.Column("received_at", sa.BigInteger(), nullable=True))
    op.add_column("quarantine", sa.Column("request_id", sa.BigInteger(), nullable=True))
    is_retried = sa.text("retried_at IS NOT NULL")
    op.create_index(
        "ix_quarantine_retried_at",
        "quarantine",
        ["retried_at"],
        sqlite_where=is_retried,
        postgresql_where=is_retried,
    )
