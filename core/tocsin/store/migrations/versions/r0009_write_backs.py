"""Attempts to write a comment, apart from those that count towards giving up."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("failures", sa.Integer(), nullable=False, server_default="0")
    with op.batch_alter_table("write_backs") as write_backs:
        write_backs.add_column(column)
    op.execute("UPDATE write_backs SET failures = attempts")
    with op.batch_alter_table("write_backs") as write_backs:
        write_backs.alter_column("failures", server_default=None)
