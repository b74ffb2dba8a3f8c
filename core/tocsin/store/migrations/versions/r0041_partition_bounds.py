"""Bounds of events, deliveries and attempts, which let PostgreSQL adopt the tables as partitions.

Rows that are stored from now on are checked. Nodes of 0040 work with it: the bound is at least a
month away, and 0043 removes it.
"""

from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None
compatible_with = "0022"

# The first ID of a month: its milliseconds, as ULIDs are written
_FIRST_ID = """
CREATE FUNCTION tocsin_first_id(kind text, month date) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT kind || '_' || string_agg(
        substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (ms >> (45 - 5 * at) & 31)::int + 1, 1),
        '' ORDER BY at
    ) || repeat('0', 16)
    FROM generate_series(0, 9) AS at,
        (SELECT extract(epoch FROM month::timestamp)::bigint * 1000 AS ms) AS moment
$$
"""
_ADD_BOUNDS = """
DO $$
DECLARE
    month date := date_trunc('month', now() AT TIME ZONE 'UTC' + interval '2 months');
    tables CONSTANT text[][] := ARRAY[
        ['events', 'id', 'evt'], ['deliveries', 'id', 'dlv'], ['attempts', 'delivery_id', 'dlv']
    ];
    entry text[];
    bound text;
    beyond text;
BEGIN
    FOREACH entry SLICE 1 IN ARRAY tables LOOP
        bound := tocsin_first_id(entry[3], month);
        EXECUTE format('SELECT min(%2$I) FROM %1$I WHERE %2$I >= $1', entry[1], entry[2])
            INTO beyond USING bound;
        IF beyond IS NOT NULL THEN
            RAISE EXCEPTION '%: found the ID %, from % or later; the clock of a node was ahead. '
                'Remove the row, or upgrade after that time', entry[1], beyond, month;
        END IF;
        EXECUTE format(
            'ALTER TABLE %1$I ADD CONSTRAINT ck_%1$s_adopted CHECK (%2$I < %3$L) NOT VALID',
            entry[1], entry[2], bound
        );
    END LOOP;
END $$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.get_bind().exec_driver_sql(_FIRST_ID)
        op.get_bind().exec_driver_sql(_ADD_BOUNDS)
