"""Inserting where a row may be there already, which SQLAlchemy spells anew for each database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def build_insert(connection: Connection, table: Table) -> Any:
    """Return an insert that has `on_conflict_do_nothing` and `on_conflict_do_update`."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    return dialect.insert(table)
