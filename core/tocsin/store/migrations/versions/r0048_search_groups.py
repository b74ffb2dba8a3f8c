"""Larger groups of changes to the search index of PostgreSQL, also for roles that do not own it.

Nodes of 0047 work with it: if they do not own the index, nodes of this revision add what they leave
waiting.
"""

from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None
compatible_with = "0022"

# Acts as its owner, who owns the index, for whoever may store documents
_FLUSH = """
CREATE FUNCTION tocsin_flush_documents() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF has_table_privilege(session_user, 'documents', 'INSERT') THEN
        PERFORM gin_clean_pending_list('ix_documents_tokens');
    END IF;
END $$
"""
_FIX_PATH = """
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION tocsin_flush_documents() SET search_path = %I, pg_temp', current_schema()
    );
END $$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER INDEX ix_documents_tokens SET (gin_pending_list_limit = 256)")
        op.execute(_FLUSH)
        op.execute(_FIX_PATH)
