"""Detection rules of alerts.

Nodes of 0049 work with it: they store alerts without a rule.
"""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.add_column("incident_alerts", sa.Column("rule", sa.Text(), nullable=True))
