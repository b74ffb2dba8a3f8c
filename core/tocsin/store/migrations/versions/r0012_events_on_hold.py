"""Events on hold: the reason why an event cannot be routed."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("events", sa.Column("routing_error", sa.Text()))
