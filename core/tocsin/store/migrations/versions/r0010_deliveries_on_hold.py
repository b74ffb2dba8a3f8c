"""Delivery state `on_hold` in place of `parked`."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_deliveries_resting", table_name="deliveries")
    op.execute("UPDATE deliveries SET state = 'on_hold' WHERE state = 'parked'")
    resting = sa.text("state IN ('dead', 'on_hold')")
    op.create_index(
        "ix_deliveries_resting",
        "deliveries",
        ["state", "id"],
        sqlite_where=resting,
        postgresql_where=resting,
    )
