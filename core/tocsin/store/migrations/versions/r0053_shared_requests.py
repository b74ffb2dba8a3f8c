"""The record with the request of a push, for the other rejected records of the push.

Nodes of 0052 work with it: each of their records contains the request, and they do not retry
records that refer to another.
"""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.add_column("quarantine", sa.Column("request_id", sa.BigInteger(), nullable=True))
