"""Tokens for prefixes in the search index of PostgreSQL, by blocks of 4,096 documents.

Nodes of 0026 work with it: a trigger adds these tokens to the documents that they index.
"""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None
compatible_with = "0022"

# Words have no punctuation of ASCII, except for the `~` of long ones. A document that has nearly
# as many tokens as PostgreSQL holds stays as it is.
_ADD = r"""
CREATE FUNCTION documents_add_prefixes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.tokens := (
    SELECT NEW.tokens::text || ' ''#prefixes''\:16383 ' || coalesce(string_agg(
      '''#' || (NEW.id >> 12) || '/' || lexeme || ''':' || array_to_string(positions, ','), ' '
    ), '')
    FROM unnest(NEW.tokens) WHERE lexeme ~ '^=' OR lexeme !~ '[!-/:-@[-`{-}]'
  )::tsvector;
  RETURN NEW;
EXCEPTION WHEN program_limit_exceeded THEN
  RETURN NEW;
END $$
"""
_TRIGGER = """
CREATE TRIGGER documents_without_prefixes BEFORE INSERT OR UPDATE OF tokens ON documents
FOR EACH ROW WHEN (NOT NEW.tokens @@ '''#prefixes'''::tsquery)
EXECUTE FUNCTION documents_add_prefixes()
"""


def upgrade() -> None:
    last = "0"
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_ADD)
        op.execute(_TRIGGER)
        last = "value"
    op.execute(
        f"INSERT INTO sequences SELECT 'documents_without_prefixes', {last} FROM sequences "  # noqa: S608 - of constants
        "WHERE name = 'document_id'"
    )
