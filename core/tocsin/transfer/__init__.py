"""Backups of a database, and copies of it to another one of either kind."""

from tocsin.transfer.backup import BackupMaker, Progress, check_vault, verify_backup
from tocsin.transfer.copy import DatabaseCopy
from tocsin.transfer.files import load_key
from tocsin.transfer.manifest import Manifest, find_backup, list_backups, remove_old
from tocsin.transfer.restore import Restore, RestoreResult, restore_backup

__all__ = [
    "BackupMaker",
    "DatabaseCopy",
    "Manifest",
    "Progress",
    "Restore",
    "RestoreResult",
    "check_vault",
    "find_backup",
    "list_backups",
    "load_key",
    "remove_old",
    "restore_backup",
    "verify_backup",
]
