"""Roles of the entities of an incident: source, target or both."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Null: the SIEM gives none, or the incident was stored before
    op.add_column("incident_entities", sa.Column("role", sa.String(10), nullable=True))
