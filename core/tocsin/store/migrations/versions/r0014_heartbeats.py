"""Heartbeats of the nodes."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    document = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    with op.batch_alter_table("nodes") as nodes:
        nodes.add_column(sa.Column("beat_at", sa.BigInteger()))
        nodes.add_column(sa.Column("stalled", document))
