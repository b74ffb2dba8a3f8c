"""Retention of incidents and of the audit log, and erased values.

Nodes of 0020 work with it, but store again what new nodes have removed or erased: use both once all
nodes are upgraded.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
compatible_with = "0020"

MOMENT = sa.BigInteger
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REFUSE = "SELECT RAISE(ABORT, 'the audit log is append-only');"
_CONTENT = "id, at, actor, action, target, address, request_id, count, details"
_NOT_REDACTED = "NOT EXISTS (SELECT 1 FROM audit_redactions r WHERE r.position = OLD.position)"
_NOT_CUT = "COALESCE(OLD.position > (SELECT COALESCE(max(position), 0) FROM audit_cuts), TRUE)"
_SQLITE = (
    "DROP TRIGGER audit_update",
    "DROP TRIGGER audit_delete",
    (
        f"CREATE TRIGGER audit_update BEFORE UPDATE OF {_CONTENT} ON audit "
        f"WHEN {_NOT_REDACTED} BEGIN {_REFUSE} END"
    ),
    f"CREATE TRIGGER audit_delete BEFORE DELETE ON audit WHEN {_NOT_CUT} BEGIN {_REFUSE} END",
)
_POSTGRES = (
    (
        "CREATE FUNCTION audit_refuse_unless_proven() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP = 'UPDATE' THEN IF {_NOT_REDACTED} THEN "
        "RAISE EXCEPTION 'the audit log is append-only'; END IF; RETURN NEW; END IF; "
        f"IF {_NOT_CUT} THEN RAISE EXCEPTION 'the audit log is append-only'; END IF; "
        "RETURN OLD; END $$"
    ),
    "DROP TRIGGER audit_update ON audit",
    "DROP TRIGGER audit_delete ON audit",
    (
        f"CREATE TRIGGER audit_update BEFORE UPDATE OF {_CONTENT} ON audit FOR EACH ROW "
        "EXECUTE FUNCTION audit_refuse_unless_proven()"
    ),
    (
        "CREATE TRIGGER audit_delete BEFORE DELETE ON audit FOR EACH ROW "
        "EXECUTE FUNCTION audit_refuse_unless_proven()"
    ),
)


def upgrade() -> None:
    op.create_table(
        "removed_incidents",
        sa.Column("number", COUNTER, autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("alert_outcome", sa.String(length=20), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_removed_incidents"),
        sa.UniqueConstraint("digest", name="uq_removed_incidents_digest"),
    )
    op.create_index("ix_removed_incidents_created_at", "removed_incidents", ["created_at"])
    op.create_index("ix_incidents_coverage_id", "incidents", ["coverage_id"])
    op.create_table(
        "audit_cuts",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seal", sa.String(length=64), nullable=False),
        sa.Column("at", MOMENT(), nullable=False),
        sa.Column("proof", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_audit_cuts"),
    )
    op.create_table(
        "audit_redactions",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("proof", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_audit_redactions"),
    )
    document = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "erasures",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("pseudonym", sa.String(length=200), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("receipt", document, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_erasures"),
        sa.UniqueConstraint("digest", name="uq_erasures_digest"),
    )
    sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in _SQLITE if sqlite else _POSTGRES:
        op.execute(statement)
