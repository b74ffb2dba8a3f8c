"""Prefixes in the search index of SQLite, and grouped changes of the one of PostgreSQL.

Nodes of 0019 work with it: only the storage of the index changes.
"""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
compatible_with = "0019"

# As in migration 0005
_JOINING = ".:/@-_+%#~&?=!$*,;"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "ALTER INDEX ix_documents_tokens SET (fastupdate = on, gin_pending_list_limit = 128)"
        )
        return
    op.execute("DROP TABLE documents_index")
    op.execute(
        "CREATE VIRTUAL TABLE documents_index USING fts5(tokens, content='documents', "
        "content_rowid='id', columnsize=0, prefix='3 4 5', "
        f"tokenize=\"ascii tokenchars '{_JOINING}'\")"
    )
    op.execute("INSERT INTO documents_index (documents_index) VALUES ('rebuild')")
