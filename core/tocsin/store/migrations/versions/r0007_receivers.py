"""Receivers."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

MOMENT = sa.BigInteger


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("remote_url", sa.Text(), nullable=True))
    op.add_column("deliveries", sa.Column("begun_by", MOMENT(), nullable=True))
    op.add_column("deliveries", sa.Column("begun_before", MOMENT(), nullable=True))
    for name, kind in (("home", sa.Text()), ("event_id", sa.String(length=40))):
        with op.batch_alter_table("remote_objects") as remote_objects:
            remote_objects.add_column(sa.Column(name, kind, nullable=False, server_default=""))
        with op.batch_alter_table("remote_objects") as remote_objects:
            remote_objects.alter_column(name, server_default=None)
