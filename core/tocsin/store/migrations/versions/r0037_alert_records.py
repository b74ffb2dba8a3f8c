"""Network flows of alerts, and alerts as the SIEM returned them.

Nodes of 0036 work with it: they store alerts without them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.add_column("incident_alerts", sa.Column("flow", sa.JSON(), nullable=True))
    op.add_column("incident_alerts", sa.Column("record", sa.JSON(), nullable=True))
