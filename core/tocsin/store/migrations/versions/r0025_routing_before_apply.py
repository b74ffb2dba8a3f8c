"""Databases that routed events before anything was applied go on routing.

They were used without any destination by versions that knew no hold of routing. Nodes of 0024 work
with it: they know the mark.
"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.execute(
        sa.text(
            "INSERT INTO sequences (name, value) "
            "SELECT 'configuration_applied_from', max(timestamp) + 1 FROM events WHERE routed "
            "HAVING max(timestamp) IS NOT NULL AND NOT EXISTS "
            "(SELECT 1 FROM sequences WHERE name = 'configuration_applied_from')"
        )
    )
