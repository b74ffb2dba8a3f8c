"""The database: opening it, its schema, and the two verbs that run work on it."""

from tocsin.store.bootstrap import (
    check_schema,
    is_sqlite,
    is_unreachable,
    open_database,
    parse_url,
    sqlite_file,
    upgrade,
)
from tocsin.store.database import Database
from tocsin.store.files import hold_lock, make_private_folder
from tocsin.store.notifications import announce, find_absent_nodes, lock_exclusively

__all__ = [
    "Database",
    "announce",
    "check_schema",
    "find_absent_nodes",
    "hold_lock",
    "is_sqlite",
    "is_unreachable",
    "lock_exclusively",
    "make_private_folder",
    "open_database",
    "parse_url",
    "sqlite_file",
    "upgrade",
]
