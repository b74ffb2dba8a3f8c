"""Events, deliveries and attempts in a partition for each month, on PostgreSQL.

The tables become the first partition as they are. Nodes of 0042 work with it: their statements are
the same, and what belongs to no month goes to a partition of its own. They add no months.
"""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None
compatible_with = "0022"

# The tables with their keys, and the kinds of IDs in these
_TABLES = """
CREATE FUNCTION tocsin_partitioned(OUT parent text, OUT key text, OUT kind text)
RETURNS SETOF record LANGUAGE sql IMMUTABLE AS $$
    VALUES ('events', 'id', 'evt'), ('deliveries', 'id', 'dlv'), ('attempts', 'delivery_id', 'dlv')
$$
"""
_COPY_PRIVILEGES = """
CREATE FUNCTION tocsin_copy_privileges(source regclass, target regclass) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    entry record;
BEGIN
    FOR entry IN SELECT item.* FROM pg_class, aclexplode(relacl) AS item WHERE oid = source LOOP
        EXECUTE format(
            'GRANT %s ON %s TO %s%s', entry.privilege_type, target,
            CASE entry.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(entry.grantee))
            END, CASE WHEN entry.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
        );
    END LOOP;
END $$
"""
# A unique key of a partitioned table has to contain the key of its partitions
_CREATE_PARTITION = """
CREATE FUNCTION tocsin_create_partition(parent text, name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', name, parent);
    PERFORM tocsin_copy_privileges(parent::regclass, name::regclass);
    IF parent = 'deliveries' THEN
        EXECUTE format('ALTER TABLE %I ADD UNIQUE (event_id, destination)', name);
    END IF;
END $$
"""
_ADOPT = """
DO $$
DECLARE
    t record;
    adopted text;
    bound text;
    month date;
    item record;
BEGIN
    ALTER TABLE attempts DROP CONSTRAINT fk_attempts_delivery_id;
    ALTER TABLE deliveries DROP CONSTRAINT fk_deliveries_event_id;
    FOR t IN SELECT * FROM tocsin_partitioned() LOOP
        SELECT substring(pg_get_constraintdef(oid) FROM '''(\\w+)''') INTO STRICT bound
            FROM pg_constraint
            WHERE conrelid = t.parent::regclass AND conname = format('ck_%s_adopted', t.parent);
        SELECT at INTO STRICT month
            FROM generate_series(-120, 3) AS months,
                date(date_trunc('month', now() AT TIME ZONE 'UTC') + months * interval '1 month')
                    AS at
            WHERE tocsin_first_id(t.kind, at) = bound;
        adopted := t.parent || to_char(month, '"_before_"YYYY_MM');
        EXECUTE format('ALTER TABLE %I RENAME TO %I', t.parent, adopted);
        EXECUTE format(
            'CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE) '
            'PARTITION BY RANGE (%I)', t.parent, adopted, t.key
        );
        PERFORM tocsin_copy_privileges(adopted::regclass, t.parent::regclass);
        FOR item IN
            SELECT c.relname AS name, pg_get_indexdef(c.oid) AS definition, i.indisprimary,
                i.indisunique
            FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
            WHERE i.indrelid = adopted::regclass
        LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', item.name, item.name || '_adopted');
            IF item.indisprimary THEN
                EXECUTE format(
                    'ALTER TABLE %I ADD CONSTRAINT %I %s', t.parent, item.name,
                    (SELECT pg_get_constraintdef(oid) FROM pg_constraint
                        WHERE conrelid = adopted::regclass AND contype = 'p')
                );
            ELSIF NOT item.indisunique THEN
                EXECUTE replace(item.definition, adopted, t.parent);
            END IF;
        END LOOP;
        EXECUTE format(
            'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)',
            t.parent, adopted, bound
        );
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT ck_%s_adopted', adopted, t.parent);
        PERFORM tocsin_create_partition(t.parent, t.parent || '_other');
        EXECUTE format(
            'ALTER TABLE %I ATTACH PARTITION %I DEFAULT', t.parent, t.parent || '_other'
        );
    END LOOP;
END $$
"""
# The next functions act as their owner, who owns the tables, for whoever may remove events
_REQUIRE_DELETE = """
CREATE FUNCTION tocsin_require_delete() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT has_table_privilege(session_user, 'events', 'DELETE') THEN
        RAISE insufficient_privilege
            USING MESSAGE = 'changing partitions requires the privilege to delete events';
    END IF;
END $$
"""
_ADD_MONTH = """
CREATE FUNCTION tocsin_add_month(month date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    first CONSTANT date := date_trunc('month', month);
    next CONSTANT date := date_trunc('month', month) + interval '1 month';
    t record;
    name text;
    is_new boolean := false;
BEGIN
    PERFORM tocsin_require_delete();
    PERFORM pg_advisory_xact_lock(hashtextextended('partitions', 0));
    FOR t IN SELECT * FROM tocsin_partitioned() LOOP
        name := t.parent || to_char(first, '_YYYY_MM');
        CONTINUE WHEN to_regclass(name) IS NOT NULL OR EXISTS (
            SELECT FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
            WHERE inhparent = t.parent::regclass
                AND substring(c.relname FROM '_before_(\\d{4}_\\d\\d)$') > to_char(first, 'YYYY_MM')
        );
        PERFORM tocsin_create_partition(t.parent, name);
        -- what was stored while there was no partition for it
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', t.parent || '_other');
        EXECUTE format(
            'WITH moved AS (DELETE FROM %I WHERE %I >= $1 AND %2$I < $2 RETURNING *) '
            'INSERT INTO %I SELECT * FROM moved', t.parent || '_other', t.key, name
        ) USING tocsin_first_id(t.kind, first), tocsin_first_id(t.kind, next);
        EXECUTE format(
            'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', t.parent, name,
            tocsin_first_id(t.kind, first), tocsin_first_id(t.kind, next)
        );
        is_new := true;
    END LOOP;
    RETURN is_new;
END $$
"""
_DROP_MONTH = """
CREATE FUNCTION tocsin_drop_month(suffix text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    t record;
BEGIN
    PERFORM tocsin_require_delete();
    IF suffix !~ '^(before_)?\\d{4}_\\d\\d$' THEN
        RAISE EXCEPTION 'no month of partitions: %', suffix;
    END IF;
    FOR t IN SELECT * FROM tocsin_partitioned() LOOP
        IF NOT EXISTS (
            SELECT FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
            WHERE inhparent = t.parent::regclass AND c.relname = t.parent || '_' || suffix
        ) THEN
            RAISE EXCEPTION '%_% is no partition of %', t.parent, suffix, t.parent;
        END IF;
        EXECUTE format('DROP TABLE %I', t.parent || '_' || suffix);
    END LOOP;
END $$
"""
# Autovacuum counts the values of each partition, but not those of a table as a whole
_ANALYZE = """
CREATE FUNCTION tocsin_analyze() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM tocsin_require_delete();
    ANALYZE events, deliveries, attempts;
END $$
"""
_FIX_PATHS = """
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'tocsin_add_month(date)', 'tocsin_drop_month(text)', 'tocsin_analyze()'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END $$
"""
_ADD_MONTHS = """
SELECT tocsin_add_month(date(now() AT TIME ZONE 'UTC' + months * interval '1 month'))
FROM generate_series(0, 4) AS months
"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for statement in (
        _TABLES,
        _COPY_PRIVILEGES,
        _CREATE_PARTITION,
        _ADOPT,
        _REQUIRE_DELETE,
        _ADD_MONTH,
        _DROP_MONTH,
        _ANALYZE,
        _FIX_PATHS,
        _ADD_MONTHS,
    ):
        op.get_bind().exec_driver_sql(statement)
