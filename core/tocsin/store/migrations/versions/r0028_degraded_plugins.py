"""Degraded plugin objects of each node.

Nodes of 0027 work with it: they do not write the column.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    document = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.add_column("nodes", sa.Column("degraded", document, nullable=True))
