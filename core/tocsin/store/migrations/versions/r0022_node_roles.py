"""Roles of the nodes.

Nodes of 0021 work with it: they leave the column empty.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
compatible_with = "0021"


def upgrade() -> None:
    document = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.add_column("nodes", sa.Column("roles", document, nullable=True))
