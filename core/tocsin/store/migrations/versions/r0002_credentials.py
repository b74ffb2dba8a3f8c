"""Credentials in full, the audit log, idempotency keys and shared rate limits."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.BigInteger

# An entry never changes but for its seal, which is set once.
CONTENT = "id, at, actor, action, target, address, request_id, count, details"
REFUSE = "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
IS_THERE = "EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)"
SQLITE_TRIGGERS = (
    f"CREATE TRIGGER audit_update BEFORE UPDATE OF {CONTENT} ON audit {REFUSE}",
    (
        "CREATE TRIGGER audit_seal BEFORE UPDATE OF position, seal ON audit "
        f"WHEN OLD.position IS NOT NULL {REFUSE}"
    ),
    f"CREATE TRIGGER audit_delete BEFORE DELETE ON audit {REFUSE}",
    # REPLACE deletes without asking the trigger above
    f"CREATE TRIGGER audit_replace BEFORE INSERT ON audit WHEN {IS_THERE} {REFUSE}",
)
EXECUTE = "EXECUTE FUNCTION audit_refuse()"
POSTGRES_TRIGGERS = (
    (
        "CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$"
    ),
    f"CREATE TRIGGER audit_update BEFORE UPDATE OF {CONTENT} ON audit FOR EACH ROW {EXECUTE}",
    (
        "CREATE TRIGGER audit_seal BEFORE UPDATE OF position, seal ON audit FOR EACH ROW "
        f"WHEN (OLD.position IS NOT NULL) {EXECUTE}"
    ),
    f"CREATE TRIGGER audit_delete BEFORE DELETE ON audit FOR EACH ROW {EXECUTE}",
    f"CREATE TRIGGER audit_truncate BEFORE TRUNCATE ON audit FOR EACH STATEMENT {EXECUTE}",
)


def upgrade() -> None:
    _extend_api_keys()
    op.create_table(
        "api_clients",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("client_id", sa.String(length=19), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("scopes", DOCUMENT, nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.Column("last_used_at", MOMENT(), nullable=True),
        sa.Column("disabled_at", MOMENT(), nullable=True),
        sa.Column("token_generation", sa.Integer(), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_api_clients"),
        sa.UniqueConstraint("client_id", name="uq_api_clients_client_id"),
    )
    op.create_table(
        "revoked_tokens",
        sa.Column("jti", sa.String(length=40), nullable=False),
        sa.Column("expires_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("jti", name="pk_revoked_tokens"),
    )
    op.create_index("ix_revoked_tokens_expires_at", "revoked_tokens", ["expires_at"])
    # Its only key signed admin tokens; a new one is made when the next is issued.
    op.drop_table("signing_keys")
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("purpose", sa.String(length=20), nullable=False),
        sa.Column("algorithm", sa.String(length=20), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("private_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.Column("signs_from", MOMENT(), nullable=False),
        sa.Column("retires_at", MOMENT(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_signing_keys"),
    )
    op.create_index("ix_signing_keys_purpose_signs_from", "signing_keys", ["purpose", "signs_from"])
    _create_audit()
    op.create_table(
        "idempotency_keys",
        sa.Column("caller", sa.String(length=300), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("content", DOCUMENT, nullable=True),
        sa.Column("record", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("caller", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.create_table(
        "rate_usage",
        sa.Column("limit", sa.String(length=20), nullable=False),
        sa.Column("key", sa.String(length=300), nullable=False),
        sa.Column("node", sa.String(length=40), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", MOMENT(), nullable=False),
        sa.PrimaryKeyConstraint("limit", "key", "node", name="pk_rate_usage"),
    )
    op.create_index("ix_rate_usage_updated_at", "rate_usage", ["updated_at"])


def _extend_api_keys() -> None:
    added = (
        sa.Column("prefix", sa.String(length=32), nullable=True),
        sa.Column("previous_hash", sa.Text(), nullable=True),
        sa.Column("previous_expires_at", MOMENT(), nullable=True),
        sa.Column("updated_at", MOMENT(), nullable=True),
        sa.Column("last_used_at", MOMENT(), nullable=True),
        sa.Column("last_rotated_at", MOMENT(), nullable=True),
        sa.Column("disabled_at", MOMENT(), nullable=True),
        sa.Column("search", sa.Text(), nullable=True),
    )
    for column in added:
        op.add_column("api_keys", column)
    words = ("name", "description", "key_id", "created_by", "scopes")
    names = ("id", "prefix", "created_at", "updated_at", "search", *words)
    columns = [sa.column(name, DOCUMENT if name == "scopes" else None) for name in names]
    keys = sa.table("api_keys", *columns)
    bind = op.get_bind()
    for key in bind.execute(sa.select(keys)).mappings().all():
        search = "\n".join([*(key[word] for word in words[:-1]), *key["scopes"]]).casefold()
        changed = {"prefix": "sk_live_", "updated_at": key["created_at"], "search": search}
        bind.execute(keys.update().where(keys.c.id == key["id"]).values(changed))
    with op.batch_alter_table("api_keys") as batch:
        for name in ("prefix", "updated_at", "search"):
            batch.alter_column(name, nullable=False)


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", COUNTER, nullable=False),
        sa.Column("at", MOMENT(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=60), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("address", sa.String(length=60), nullable=False),
        sa.Column("request_id", sa.String(length=128), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("details", DOCUMENT, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("seal", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sa.UniqueConstraint("position", name="uq_audit_position"),
    )
    op.create_index("ix_audit_action_id", "audit", ["action", "id"])
    op.create_index(
        "ix_audit_unsealed",
        "audit",
        ["id"],
        sqlite_where=sa.text("position IS NULL"),
        postgresql_where=sa.text("position IS NULL"),
    )
    sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in SQLITE_TRIGGERS if sqlite else POSTGRES_TRIGGERS:
        op.execute(statement)
    sequences = sa.table("sequences", sa.column("name"), sa.column("value"))
    op.bulk_insert(sequences, [{"name": "audit_position", "value": 0}])
