"""Versions of the rows of API keys, which change with whatever authenticates callers.

Nodes of 0045 work with it: they read no versions, and triggers give their changes new ones.
"""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None
compatible_with = "0022"

_CHANGES = (
    "id, key_id, prefix, name, description, scopes, secret_hash, previous_hash, "
    "previous_expires_at, created_by, created_at, updated_at, expires_at, last_rotated_at, "
    "disabled_at"
)
_RENEW = "BEGIN UPDATE api_keys SET row_version = random() WHERE id = NEW.id; END"
_SQLITE = (
    f"CREATE TRIGGER api_keys_insert AFTER INSERT ON api_keys WHEN NEW.row_version = 0 {_RENEW}",
    f"CREATE TRIGGER api_keys_update AFTER UPDATE OF {_CHANGES} ON api_keys {_RENEW}",
)
_POSTGRES = (
    (
        "CREATE FUNCTION tocsin_renew_row_version() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "NEW.row_version := hashtextextended(gen_random_uuid()::text, 0); RETURN NEW; END $$"
    ),
    (
        "CREATE TRIGGER api_keys_insert BEFORE INSERT ON api_keys FOR EACH ROW "
        "WHEN (NEW.row_version = 0) EXECUTE FUNCTION tocsin_renew_row_version()"
    ),
    (
        f"CREATE TRIGGER api_keys_update BEFORE UPDATE OF {_CHANGES} ON api_keys FOR EACH ROW "
        "EXECUTE FUNCTION tocsin_renew_row_version()"
    ),
)


def upgrade() -> None:
    version = sa.Column("row_version", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("api_keys", version)
    sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in _SQLITE if sqlite else _POSTGRES:
        op.execute(statement)
    op.execute("UPDATE api_keys SET id = id")  # triggers give the rows, which are few, a version
