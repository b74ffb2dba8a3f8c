"""Examination of the database: faults, head, settings and privileges."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, text

from tocsin.accounting import load_rollbacks
from tocsin.cli.database import check_presence
from tocsin.cli.doctor.findings import Area
from tocsin.clock import SystemClock
from tocsin.credentials import (
    EncryptionKeyState,
    Vault,
    find_nodes_without,
    load_encryption_keys,
    open_proven_vault,
)
from tocsin.errors import OperatorError
from tocsin.settings import Settings
from tocsin.store import (
    CLOCK_TOLERANCE,
    Database,
    HeadFile,
    check_schema,
    describe_offset,
    find_missing_limits,
    find_node_roles,
    identify_location,
    measure_offset,
    parse_url,
    require_fault,
    require_writable,
)
from tocsin.store.tables import metadata

_UNSAFE = {
    "fsync": "a power failure can lose commits and damage the database",
    "full_page_writes": "a power failure can damage the database",
    "synchronous_commit": "a power failure can lose data that was already reported as stored",
}
"""PostgreSQL parameters that must be on."""
# A role that owns none of the tables leaves upgrades to their owner
_MAY_UPGRADE = """
SELECT has_schema_privilege(current_schema(), 'CREATE')
    OR NOT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'incidents'::regclass
"""
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_NEEDED = 17
"""Connections that each node can need."""
_NEEDED_BY_OTHERS = 10
"""Connections that commands and backups can need."""
_FOREIGN_SESSIONS = """
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
    AND (datname <> current_database() OR usename <> current_user)
"""


async def examine_database(area: Area, settings: Settings, database: Database) -> bool:
    """Examine the database; return whether it can be read."""
    file = HeadFile(settings.data_dir, identify_location(parse_url(settings.database)))
    try:
        await database.require_sessions()
        await check_presence(database, file)
        await check_schema(database)
        vault = await open_proven_vault(settings, database)
    except OperatorError as error:
        found, _, remedy = str(error).partition("; ")
        area.fail(found, remedy or "see docs/operators/install.md")
        return False
    area.note(
        "the schema is up to date, the encryption key is valid and no connection pooler shares "
        "sessions"
    )
    try:
        await require_writable(database)
    except Exception as error:  # noqa: BLE001 - raised again if it is no fault
        add_fault(area, error)
    await database.read(_examine_keys, area, vault)
    for anomaly in await database.read(load_rollbacks, file):
        area.fail(anomaly["detail"], "see docs/operators/accounting.md#database-rollback")
    for limit in await database.read(find_missing_limits):
        area.warn(
            f"this session limit is not in effect: {limit}",
            "configure the pooler to forward `SET` to PostgreSQL, or set the limit with "
            "`ALTER ROLE`",
        )
    for found, remedy in await database.read(lambda connection: list(_examine_server(connection))):
        area.warn(found, remedy)
    return True


def add_fault(area: Area, error: Exception) -> None:
    """Add a fault of the database, with the service log's advice; raises any other error again."""
    found, _, remedy = str(require_fault(error)).partition("; ")
    area.fail(found, f"{remedy}; see docs/operators/alerts.md#tocsindatabaseaway")


def _examine_keys(connection: Connection, area: Area, vault: Vault) -> None:
    """Find an incomplete rotation of the encryption key."""
    for key in load_encryption_keys(connection):
        if key.state is EncryptionKeyState.PREVIOUS:
            rest = "not counted yet" if key.remaining is None else str(key.remaining)
            area.warn(
                "the encryption key is being rotated; values that are still encrypted with "
                f"{key.id}: {rest}",
                f"keep both keys configured until `tocsin db keys` shows {key.id} as `retired`",
            )
        elif key.state is EncryptionKeyState.RETIRED and key.id in vault.key_ids:
            area.warn(
                f"the encryption key {key.id} is no longer needed",
                f"remove it from {vault.source} on all nodes",
            )
    newest = vault.key_ids[0]
    if newest == vault.current_id:
        return
    for name in find_nodes_without(connection, newest, SystemClock().now()):
        area.fail(
            f"{name} cannot read the new encryption key {newest}, so no node uses the key yet",
            "configure the key on this node, then reload or restart the node",
        )


def _examine_server(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield problems of a PostgreSQL server, each with its remedy; nothing for SQLite."""
    if connection.dialect.name != "postgresql":
        return
    query = "SELECT name, setting FROM pg_settings WHERE context <> 'internal'"
    current = dict(map(tuple, connection.execute(text(query))))
    for name, why in _UNSAFE.items():
        if current.get(name) == "off":
            yield (
                f"{name} is off: {why}",
                f"run `ALTER SYSTEM SET {name} = on`, then reload PostgreSQL",
            )
    most = int(current["max_connections"]) - int(current["superuser_reserved_connections"])
    left = most - (connection.scalar(text(_FOREIGN_SESSIONS)) or 0)
    nodes = max(1, len(find_node_roles(connection, SystemClock().now())))
    if left < (needed := nodes * _NEEDED + _NEEDED_BY_OTHERS):
        found = f"other programs leave {left} of {most} connections, but Tocsin can need {needed}"
        yield (
            f"{found} (running nodes: {nodes})",
            f"increase `max_connections` in PostgreSQL by at least {needed - left}",
        )
    missing = [name for name in metadata.tables if not _has_access(connection, name)]
    if missing:
        found = f"missing privileges on: {', '.join(sorted(missing))}"
        yield found, "make the database user the owner of these tables"
    if not connection.scalar(text(_MAY_UPGRADE)):
        yield (
            "the database user is not allowed to create tables, so `tocsin db upgrade` fails",
            "grant the user CREATE on the schema, or run the upgrade as the owner of the schema",
        )


def _has_access(connection: Connection, table: str) -> bool:
    query = text(
        f"SELECT {' AND '.join(f'has_table_privilege(:table, {right!r})' for right in _RIGHTS)}"
    )
    return bool(connection.scalar(query, {"table": table}))


async def examine_database_clock(area: Area, database: Database) -> None:
    """Compare the clock of this machine with the database's."""
    offset = await database.read(measure_offset, SystemClock())
    if offset is None:
        return
    if abs(offset) < CLOCK_TOLERANCE:
        area.note("this machine's clock matches the database's")
    else:
        area.fail(
            "compared with the database's clock, this machine's clock is "
            f"{describe_offset(offset)}",
            "synchronize the clocks with NTP",
        )
