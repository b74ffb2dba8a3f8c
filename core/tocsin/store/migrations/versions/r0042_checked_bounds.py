"""Check of the bounds of the rows that are stored, on PostgreSQL.

It reads the tables, and nodes continue meanwhile. Nodes of 0041 work with it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in ("events", "deliveries", "attempts"):
            op.execute(sa.text(f"ALTER TABLE {table} VALIDATE CONSTRAINT ck_{table}_adopted"))
