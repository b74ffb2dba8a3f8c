"""Epochs of the database, the clocks of its nodes, and when a configuration was first applied."""

import secrets
import time

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    epochs = op.create_table(
        "epochs",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("first_number", sa.BigInteger(), nullable=False),
        sa.Column("first_change", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("after", sa.String(length=40), nullable=True),
        sa.Column("found_number", sa.BigInteger(), nullable=True),
        sa.Column("known_number", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_epochs"),
        sa.UniqueConstraint("id", name="uq_epochs_id"),
    )
    first = {"number": 1, "id": secrets.token_hex(16), "started_at": time.time_ns() // 1000}
    op.bulk_insert(epochs, [first | {"first_number": 1, "first_change": 1}])
    op.create_table(
        "nodes",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("clock_offset_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_nodes"),
    )
    if (applied_from := _find_first_application()) is not None:
        mark = sa.text("INSERT INTO sequences VALUES ('configuration_applied_from', :moment)")
        op.get_bind().execute(mark, {"moment": applied_from})


def _find_first_application() -> int | None:
    """Return when a configuration was first applied, None if none was.

    With SQLite, every start applies it before anything is routed.
    """
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        return 0
    first = sa.text(
        "SELECT min(created_at) FROM (SELECT created_at FROM destinations UNION ALL "
        "SELECT created_at FROM schedules WHERE managed_by = 'file') AS made"
    )
    return connection.execute(first).scalar()
