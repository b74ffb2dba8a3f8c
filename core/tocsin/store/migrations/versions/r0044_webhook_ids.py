"""Indexes of the IDs by which webhooks name remote objects, and the IDs of their parents.

Nodes of 0043 work with it: they read no parents.
"""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    op.add_column("remote_objects", sa.Column("parent_id", sa.String(length=200), nullable=True))
    op.create_index(
        "ix_remote_objects_remote_id", "remote_objects", ["remote_id"], postgresql_using="hash"
    )
    has_parent = sa.text("parent_id IS NOT NULL")
    op.create_index(
        "ix_remote_objects_parent_id",
        "remote_objects",
        ["parent_id"],
        sqlite_where=has_parent,
        postgresql_where=has_parent,
    )
