"""Comparison of the database's head with the heads that are stored outside the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from tocsin.accounting.anomalies import represent_anomaly
from tocsin.clock import isoformat
from tocsin.errors import OperatorError
from tocsin.store import Epoch, HeadFile, StoredHead, find_rollback, load_epochs, load_head


def report_head(connection: Connection, file: HeadFile) -> dict[str, Any]:
    """Return the database's epochs and head and the stored heads, as JSON.

    If `unaccounted` is empty, the database is not behind any stored head. Raises OperatorError if
    the file cannot be read or does not contain a head of this database.
    """
    history = load_epochs(connection)
    stored = file.load(history)
    if not stored:
        raise OperatorError(
            f"{file.path}: no record of this database; run the command on a machine that runs a "
            f"node, with that node's TOCSIN_DATA_DIR"
        )
    return {
        "database": asdict(load_head(connection)),
        "stored": [_represent_stored(head) for head in stored],
        "epochs": [_represent_epoch(epoch) for epoch in history],
        "unaccounted": list(find_rollbacks(connection, stored)),
    }


def find_rollbacks(connection: Connection, stored: list[StoredHead]) -> Iterator[dict[str, Any]]:
    """Yield an anomaly for each stored head that the database is behind."""
    for one in stored:
        if (rollback := find_rollback(connection, one.head)) is not None:
            yield represent_anomaly("rolled-back", "head", one.stored_at, str(rollback))


def load_rollbacks(connection: Connection, file: HeadFile) -> list[dict[str, Any]]:
    """Return an anomaly for each head in the file that the database is behind."""
    return list(find_rollbacks(connection, file.load(load_epochs(connection))))


def _represent_stored(stored: StoredHead) -> dict[str, Any]:
    facts = {"location": stored.location, "stored_at": stored.stored_at}
    return facts | asdict(stored.head)


def _represent_epoch(epoch: Epoch) -> dict[str, Any]:
    return asdict(epoch) | {"started_at": isoformat(epoch.started_at)}
