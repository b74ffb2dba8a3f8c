"""Encryption keys that the database uses, and what stays when they change.

Nodes of 0025 work with it: the key changes only once all running nodes can read the new one, and
these nodes do not say that they can.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
compatible_with = "0022"


def upgrade() -> None:
    document = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.add_column("nodes", sa.Column("encryption_keys", document, nullable=True))
    op.create_table(
        "encryption_keys",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("retired_at", sa.BigInteger(), nullable=True),
        sa.Column("remaining", sa.BigInteger(), nullable=True),
        sa.Column("node", sa.BigInteger(), nullable=True),
        sa.Column("lease", sa.String(length=40), nullable=True),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_encryption_keys"),
    )
    op.create_table(
        "derived_keys",
        sa.Column("purpose", sa.String(length=40), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("purpose", name="pk_derived_keys"),
    )
