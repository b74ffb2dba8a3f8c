"""Triage of incidents.

Nodes of 0028 work with it: they show no triage, and new nodes rebuild the documents that they
store. Erase values once all nodes are upgraded: older ones leave them in these tables.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
compatible_with = "0022"

COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _number(table: str, *, is_key: bool = True) -> tuple[sa.Column[int], sa.ForeignKeyConstraint]:
    autoincrement: Any = False if is_key else "auto"
    return (
        sa.Column("incident_number", COUNTER, nullable=False, autoincrement=autoincrement),
        sa.ForeignKeyConstraint(
            ["incident_number"],
            ["incidents.number"],
            name=f"fk_{table}_incident_number",
            ondelete="CASCADE",
        ),
    )


def upgrade() -> None:
    op.create_table(
        "incident_triage",
        *_number("incident_triage"),
        sa.Column("assignee", sa.String(length=300), nullable=True),
        sa.Column("acknowledged_by", sa.String(length=300), nullable=True),
        sa.Column("acknowledged_at", sa.BigInteger(), nullable=True),
        sa.Column("disposition", sa.String(length=30), nullable=True),
        sa.Column("disposition_reason", sa.Text(), nullable=True),
        sa.Column("disposition_source", sa.String(length=20), nullable=True),
        sa.Column("disposition_by", sa.String(length=300), nullable=True),
        sa.Column("disposition_at", sa.BigInteger(), nullable=True),
        sa.Column("comment_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("incident_number", name="pk_incident_triage"),
    )
    for name in ("assignee", "disposition"):
        op.create_index(
            f"ix_incident_triage_{name}_incident_number",
            "incident_triage",
            [name, "incident_number"],
        )
    op.create_table(
        "incident_labels",
        *_number("incident_labels"),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("value", sa.String(length=300), nullable=False),
        sa.PrimaryKeyConstraint("incident_number", "kind", "value", name="pk_incident_labels"),
    )
    op.create_index(
        "ix_incident_labels_value_kind_incident_number",
        "incident_labels",
        ["value", "kind", "incident_number"],
    )
    op.create_table(
        "incident_comments",
        sa.Column("id", sa.String(length=40), nullable=False),
        *_number("incident_comments", is_key=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_by", sa.String(length=300), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_incident_comments"),
    )
    op.create_index(
        "ix_incident_comments_incident_number_id", "incident_comments", ["incident_number", "id"]
    )
    op.create_table(
        "incident_changes",
        *_number("incident_changes"),
        sa.Column("change", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.String(length=300), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column(
            "members",
            sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("incident_number", "change", name="pk_incident_changes"),
    )
