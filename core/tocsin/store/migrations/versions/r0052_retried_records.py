"""Index of the times at which quarantined records were retried.

Nodes of 0051 work with it: they do not look records up by these times.
"""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    is_retried = sa.text("retried_at IS NOT NULL")
    op.create_index(
        "ix_quarantine_retried_at",
        "quarantine",
        ["retried_at"],
        sqlite_where=is_retried,
        postgresql_where=is_retried,
    )
