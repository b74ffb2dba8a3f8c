"""The requests of rejected incidents, for their retries, and when the pushes were received.

Nodes of 0050 work with it: they do not store the requests.
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
