"""Index of the incidents of each provider, in the order of their changes.

Nodes of 0030 work with it: they do not need the index.
"""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    columns = ["provider", "change", "severity", "status"]
    op.create_index("ix_incidents_provider_change", "incidents", columns)
