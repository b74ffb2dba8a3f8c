"""Investigations, the graph and search."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.BigInteger


def upgrade() -> None:
    _widen_incidents()
    _create_sessions()
    _create_enrichments()
    _create_relations()
    _create_search()


def _widen_incidents() -> None:
    op.add_column("incident_entities", sa.Column("change", sa.BigInteger(), nullable=True))
    op.drop_index("ix_incident_entities_value_kind", table_name="incident_entities")
    op.create_index(
        "ix_incident_entities_value_kind_incident_number",
        "incident_entities",
        ["value", "kind", "incident_number"],
    )
    op.create_index(
        "ix_incidents_occurred_at",
        "incidents",
        ["occurred_at", "number"],
    )
    is_merged = sa.text("merged_into IS NOT NULL")
    op.create_index(
        "ix_incidents_merged_into",
        "incidents",
        ["provider", "merged_into", "number"],
        sqlite_where=is_merged,
        postgresql_where=is_merged,
    )
    op.create_table(
        "incident_techniques",
        sa.Column("incident_number", sa.BigInteger(), nullable=False),
        sa.Column("technique", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name="fk_incident_techniques_incident_number"
        ),
        sa.PrimaryKeyConstraint("incident_number", "technique", name="pk_incident_techniques"),
    )
    op.create_index(
        "ix_incident_techniques_technique_incident_number",
        "incident_techniques",
        ["technique", "incident_number"],
    )
    _copy_techniques()


def _copy_techniques() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    each = "jsonb_array_elements_text(techniques)" if is_postgres else "json_each(techniques)"
    names = f"SELECT DISTINCT number, each.value FROM incidents, {each} AS each"  # noqa: S608 - ours
    op.execute(f"INSERT INTO incident_techniques (incident_number, technique) {names}")


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("persona", sa.String(length=20), nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=True),
        sa.Column("schedule_id", sa.String(length=40), nullable=True),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("timeout_ms", sa.BigInteger(), nullable=False),
        sa.Column("progress", DOCUMENT, nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("verdict", sa.String(length=20), nullable=True),
        sa.Column("confidence", sa.String(length=20), nullable=True),
        sa.Column("risk_score", sa.Float(), nullable=True),
        sa.Column("finding_count", sa.Integer(), nullable=True),
        sa.Column("entity_count", sa.Integer(), nullable=True),
        sa.Column("report", DOCUMENT, nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.Column("asked_at", MOMENT(), nullable=False),
        sa.Column("started_at", MOMENT(), nullable=True),
        sa.Column("completed_at", MOMENT(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("node", sa.BigInteger(), nullable=True),
        sa.Column("lease", sa.String(length=40), nullable=True),
        sa.Column("leased_until", MOMENT(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_index(
        "ix_sessions_provider_id",
        "sessions",
        ["provider", "id"],
    )
    op.create_index(
        "ix_sessions_schedule_id_id",
        "sessions",
        ["schedule_id", "id"],
    )
    op.create_index(
        "ix_sessions_status_id",
        "sessions",
        ["status", "id"],
    )
    op.create_table(
        "session_messages",
        sa.Column("session_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name="fk_session_messages_session_id"
        ),
        sa.PrimaryKeyConstraint("session_id", "number", name="pk_session_messages"),
    )
    op.create_table(
        "session_steps",
        sa.Column("session_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=20), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("asked_of", sa.String(length=200), nullable=True),
        sa.Column("question", sa.Text(), nullable=True),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("conclusion", sa.Text(), nullable=True),
        sa.Column("evidence", DOCUMENT, nullable=True),
        sa.Column("started_at", MOMENT(), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("elapsed_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name="fk_session_steps_session_id"
        ),
        sa.PrimaryKeyConstraint("session_id", "number", name="pk_session_steps"),
    )
    op.create_table(
        "write_backs",
        sa.Column("session_id", sa.String(length=40), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("incident_number", sa.BigInteger(), nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("external_id", sa.String(length=500), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("due_at", MOMENT(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("finished_at", MOMENT(), nullable=True),
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name="fk_write_backs_incident_number"
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name="fk_write_backs_session_id",
        ),
        sa.PrimaryKeyConstraint("session_id", "run", "incident_number", name="pk_write_backs"),
    )
    op.create_index(
        "ix_write_backs_due",
        "write_backs",
        ["provider", "due_at"],
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )


def _create_enrichments() -> None:
    op.create_table(
        "enrichments",
        sa.Column("enricher", sa.String(length=100), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("value", sa.String(length=2048), nullable=False),
        sa.Column("content", DOCUMENT, nullable=True),
        sa.Column("fetched_at", MOMENT(), nullable=False),
        sa.Column("changed_at", MOMENT(), nullable=False),
        sa.Column("expires_at", MOMENT(), nullable=True),
        sa.PrimaryKeyConstraint("enricher", "kind", "value", name="pk_enrichments"),
    )


def _create_relations() -> None:
    op.create_table(
        "relations",
        sa.Column("id", COUNTER, nullable=False),
        sa.Column("source_kind", sa.String(length=20), nullable=False),
        sa.Column("source_value", sa.String(length=2048), nullable=False),
        sa.Column("type", sa.String(length=20), nullable=False),
        sa.Column("target_kind", sa.String(length=20), nullable=False),
        sa.Column("target_value", sa.String(length=2048), nullable=False),
        sa.Column("first_seen", MOMENT(), nullable=False),
        sa.Column("last_seen", MOMENT(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("tlp", sa.Integer(), nullable=False),
        sa.Column("pap", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_relations"),
        sa.UniqueConstraint("digest", name="uq_relations_digest"),
    )
    op.create_index(
        "ix_relations_source_value_source_kind_id",
        "relations",
        ["source_value", "source_kind", "id"],
    )
    op.create_index(
        "ix_relations_target_value_target_kind_id",
        "relations",
        ["target_value", "target_kind", "id"],
    )
    op.create_index("ix_relations_type", "relations", ["type"])
    is_strict = sa.text("tlp > 2 OR pap > 2")
    for end in ("source", "target"):
        op.create_index(
            f"ix_relations_strict_{end}",
            "relations",
            [f"{end}_value", f"{end}_kind", "tlp", "pap"],
            sqlite_where=is_strict,
            postgresql_where=is_strict,
        )
    op.create_table(
        "relation_sources",
        sa.Column("relation_id", COUNTER, nullable=False),
        sa.Column("source", sa.String(length=200), nullable=False),
        sa.Column("at", MOMENT(), nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name="fk_relation_sources_relation_id"
        ),
        sa.PrimaryKeyConstraint("relation_id", "source", name="pk_relation_sources"),
    )


def _create_search() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "documents",
        sa.Column("id", COUNTER, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("record", sa.String(length=40), nullable=False),
        sa.Column("at", MOMENT(), nullable=False),
        sa.Column("change", sa.BigInteger(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("entities", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("tokens", postgresql.TSVECTOR() if is_postgres else sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.UniqueConstraint("kind", "record", name="uq_documents_kind_record"),
    )
    op.create_table(
        "entities",
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("value", sa.String(length=2048), nullable=False),
        sa.Column("incident_count", sa.BigInteger(), nullable=False),
        sa.Column("first_seen", MOMENT(), nullable=False),
        sa.Column("last_seen", MOMENT(), nullable=False),
        sa.Column("last_incident", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "value", name="pk_entities"),
    )
    op.create_table(
        "entity_providers",
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("value", sa.String(length=2048), nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.PrimaryKeyConstraint("kind", "value", "provider", name="pk_entity_providers"),
    )
    op.execute(
        "INSERT INTO entity_providers SELECT DISTINCT kind, value, provider FROM incident_entities "
        "JOIN incidents ON incidents.number = incident_entities.incident_number"
    )
    in_bytes = "C" if is_postgres else None
    op.create_table(
        "entity_names",
        sa.Column("name", sa.String(length=100, collation=in_bytes), nullable=False),
        sa.Column("part", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("value", sa.String(length=2048), nullable=False),
        sa.PrimaryKeyConstraint("name", "part", "kind", "value", name="pk_entity_names"),
    )
    op.execute("INSERT INTO sequences VALUES ('document_id', 0), ('incidents_indexed', 0)")
    if is_postgres:
        _index_on_postgres()
    else:
        _index_on_sqlite()


def _index_on_postgres() -> None:
    """Index the tokens, and keep everything long out of the rows that a search walks over.

    Without the list of pending entries, which every search would read to its end.
    """
    op.create_index(
        "ix_documents_tokens",
        "documents",
        ["tokens"],
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
    )
    op.execute("ALTER TABLE documents SET (toast_tuple_target = 128)")
    op.execute("ALTER TABLE documents ALTER COLUMN tokens SET STORAGE EXTERNAL")


# Tokens are split at the space alone, and taken as they are: every other character of ASCII that a
# token may have is named here, and beyond ASCII all belong to one.
_JOINING = ".:/@-_+%#~&?=!$*,;"


def _index_on_sqlite() -> None:
    op.execute(
        "CREATE VIRTUAL TABLE documents_index USING fts5(tokens, content='documents', "
        f"content_rowid='id', columnsize=0, tokenize=\"ascii tokenchars '{_JOINING}'\")"
    )
    remove = (
        "INSERT INTO documents_index (documents_index, rowid, tokens) "
        "VALUES ('delete', old.id, old.tokens);"
    )
    add = "INSERT INTO documents_index (rowid, tokens) VALUES (new.id, new.tokens);"
    for when, what in (
        ("INSERT", add),
        ("DELETE", remove),
        ("UPDATE OF tokens", remove + add),
    ):
        name = f"documents_{when.split()[0].lower()}"
        op.execute(f"CREATE TRIGGER {name} AFTER {when} ON documents BEGIN {what} END")
