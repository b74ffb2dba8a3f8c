"""Database access: connection, schema, reads and writes; the tables are in `store.tables`."""

from tocsin.store.bootstrap import (
    check_schema,
    is_sqlite,
    open_database,
    parse_url,
    sqlite_file,
    upgrade,
)
from tocsin.store.database import Database, Operation, P
from tocsin.store.faults import (
    DatabaseFailure,
    DatabaseFault,
    UnusableDatabaseError,
    describe_fault,
    find_fault,
)
from tocsin.store.files import hold_lock, make_private_folder
from tocsin.store.leases import LEASE_DURATION, Lease, LeasedTable, LeaseLost
from tocsin.store.notifications import announce, find_absent_nodes, lock_exclusively
from tocsin.store.session_limits import find_missing_limits
from tocsin.store.statements import (
    AUDIT_POSITION,
    INCIDENT_CHANGE,
    INCIDENT_NUMBER,
    MAX_COUNTED,
    BulkStatement,
    Row,
    Total,
    allot_numbers,
    build_bounded_count,
    build_insert,
    count_matching,
    load_events_kept_from,
    load_last_allotted,
    record_events_kept_from,
)
from tocsin.store.text import clean_identifier, clean_text

__all__ = [
    "AUDIT_POSITION",
    "INCIDENT_CHANGE",
    "INCIDENT_NUMBER",
    "LEASE_DURATION",
    "MAX_COUNTED",
    "BulkStatement",
    "Database",
    "DatabaseFailure",
    "DatabaseFault",
    "Lease",
    "LeaseLost",
    "LeasedTable",
    "Operation",
    "P",
    "Row",
    "Total",
    "UnusableDatabaseError",
    "allot_numbers",
    "announce",
    "build_bounded_count",
    "build_insert",
    "check_schema",
    "clean_identifier",
    "clean_text",
    "count_matching",
    "describe_fault",
    "find_absent_nodes",
    "find_fault",
    "find_missing_limits",
    "hold_lock",
    "is_sqlite",
    "load_events_kept_from",
    "load_last_allotted",
    "lock_exclusively",
    "make_private_folder",
    "open_database",
    "parse_url",
    "record_events_kept_from",
    "sqlite_file",
    "upgrade",
]
