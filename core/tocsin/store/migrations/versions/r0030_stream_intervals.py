"""Intervals of the streams that are read less often than their provider is polled.

Nodes of 0029 work with it: they do not write the column.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    document = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.add_column("providers", sa.Column("stream_intervals_ms", document, nullable=True))
