"""Stored shapes of the records of providers, with their drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from tocsin.shapes import FieldDrift, RecordContract, ShapeHistory, ShapeSample, find_drift
from tocsin.store import build_insert
from tocsin.store.tables import record_shapes

_columns = record_shapes.c


def add_samples(
    connection: Connection,
    provider: str,
    contracts: Mapping[str, RecordContract],
    samples: Mapping[str, Sequence[ShapeSample]],
    now: datetime,
) -> tuple[list[FieldDrift], list[FieldDrift]]:
    """Add samples to what is stored, and store the drift; return the drift before and after.

    Kinds of records that no longer have a contract are removed.
    """
    before: list[FieldDrift] = []
    after: list[FieldDrift] = []
    outdated = _columns.kind.not_in(contracts)
    connection.execute(delete(record_shapes).where(_columns.provider == provider, outdated))
    for kind, several in samples.items():
        contract, shape = contracts[kind], _load_shape(connection, provider, kind)
        before += find_drift(kind, contract, shape)
        for sample in several:
            shape.note(sample, contract)
        drift = list(find_drift(kind, contract, shape))
        after += drift
        columns = {"shape": shape.to_json(), "drift": [one.to_json() for one in drift]}
        _store_shape(connection, provider, kind, {**columns, "updated_at": now})
    return before, after


def _load_shape(connection: Connection, provider: str, kind: str) -> ShapeHistory:
    """Return what is remembered of a kind of record, an empty history without a row."""
    query = select(_columns.shape).where(_columns.provider == provider, _columns.kind == kind)
    stored = connection.execute(query).scalar_one_or_none()
    return ShapeHistory() if stored is None else ShapeHistory.parse(stored)


def _store_shape(
    connection: Connection, provider: str, kind: str, values: Mapping[str, Any]
) -> None:
    row = build_insert(connection, record_shapes).values(provider=provider, kind=kind, **values)
    connection.execute(row.on_conflict_do_update(index_elements=["provider", "kind"], set_=values))


def load_drift(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Return the JSON of the drift of every provider whose records were sampled, by name."""
    found: dict[str, list[dict[str, Any]]] = {}
    query = select(_columns.provider, _columns.drift).order_by(_columns.provider, _columns.kind)
    for provider, drift in connection.execute(query):
        found.setdefault(provider, []).extend(drift)
    return found
