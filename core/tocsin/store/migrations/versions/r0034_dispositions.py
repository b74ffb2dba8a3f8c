"""Index of the incidents with a disposition, by its time.

Nodes of 0033 work with it: they do not need the index.
"""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.create_index("ix_incident_triage_disposition_at", "incident_triage", ["disposition_at"])
