"""Documents of incidents, and their number by severity and status.

Nodes of 0017 work with it: triggers count the incidents that they store, and the documents of those
that they change are outdated by their change numbers.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
compatible_with = "0017"

_COUNT = """
INSERT INTO incident_counts (severity, status, count) VALUES (NEW.severity, NEW.status, 1)
ON CONFLICT (severity, status) DO UPDATE SET count = incident_counts.count + 1;
"""
_DISCOUNT = """
UPDATE incident_counts SET count = count - 1
WHERE severity = OLD.severity AND status = OLD.status;
"""
_DIFFERS = "OLD.severity <> NEW.severity OR OLD.status <> NEW.status"
_SQLITE = (
    f"CREATE TRIGGER incident_inserted AFTER INSERT ON incidents BEGIN {_COUNT} END",
    f"CREATE TRIGGER incident_deleted AFTER DELETE ON incidents BEGIN {_DISCOUNT} END",
    (
        "CREATE TRIGGER incident_updated AFTER UPDATE OF severity, status ON incidents "
        f"WHEN {_DIFFERS} BEGIN {_DISCOUNT} {_COUNT} END"
    ),
)
_EACH_ROW = "ON incidents FOR EACH ROW"
_POSTGRES = (
    (
        "CREATE FUNCTION incidents_count() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP <> 'INSERT' THEN {_DISCOUNT} END IF; "
        f"IF TG_OP <> 'DELETE' THEN {_COUNT} END IF; "
        "RETURN NULL; END $$"
    ),
    (
        "CREATE FUNCTION incidents_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "DELETE FROM incident_counts; RETURN NULL; END $$"
    ),
    (
        f"CREATE TRIGGER incident_stored AFTER INSERT OR DELETE {_EACH_ROW} "
        "EXECUTE FUNCTION incidents_count()"
    ),
    (
        f"CREATE TRIGGER incident_updated AFTER UPDATE OF severity, status {_EACH_ROW} "
        f"WHEN ({_DIFFERS}) EXECUTE FUNCTION incidents_count()"
    ),
    (
        "CREATE TRIGGER incidents_truncated AFTER TRUNCATE ON incidents "
        "EXECUTE FUNCTION incidents_truncate()"
    ),
)


def upgrade() -> None:
    op.create_table(
        "incident_documents",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("change", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["number"],
            ["incidents.number"],
            name="fk_incident_documents_number",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("number", name="pk_incident_documents"),
    )
    op.create_table(
        "incident_counts",
        sa.Column("severity", sa.String(length=20), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("severity", "status", name="pk_incident_counts"),
    )
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    if not is_sqlite:  # no incident may be stored between the count and the triggers
        op.execute("LOCK TABLE incidents IN SHARE ROW EXCLUSIVE MODE")
    op.execute(
        "INSERT INTO incident_counts SELECT severity, status, count(*) FROM incidents "
        "GROUP BY severity, status"
    )
    op.execute("INSERT INTO sequences VALUES ('incident_documents_version', 0)")
    for statement in _SQLITE if is_sqlite else _POSTGRES:
        op.execute(statement)
