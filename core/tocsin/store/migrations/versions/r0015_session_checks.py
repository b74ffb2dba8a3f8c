"""Checks of console sessions with their issuer."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Sessions that an older version began are of unknown issuers' sessions: people sign in again
    op.execute("DELETE FROM console_sessions WHERE principal LIKE 'oidc:%'")
    op.add_column("console_sessions", sa.Column("sid", sa.Text, nullable=True))
    op.add_column("console_sessions", sa.Column("sealed_grant", sa.Text, nullable=True))
    op.add_column("console_sessions", sa.Column("check_at", sa.BigInteger, nullable=True))
    op.add_column("console_sessions", sa.Column("valid_until", sa.BigInteger, nullable=True))
