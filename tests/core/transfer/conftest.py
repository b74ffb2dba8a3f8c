"""Filled databases, and empty ones to fill from them."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import URL, Connection, func, make_url, select

from delivery_rows import add_delivery, add_destination, add_event
from incident_rows import add_incidents
from session_rows import add_session
from tocsin import audit
from tocsin.credentials import ApiKey, Scope, create_api_key, save_view
from tocsin.delivery import NewSuppression, create_suppression
from tocsin.store import open_database
from tocsin.store.tables import metadata
from tocsin.transfer.layout import list_layouts

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


KEY = ApiKey(
    id="1",
    key_id="k" * 16,
    prefix="sk_live_",
    name="playbooks",
    description="",
    scopes=(Scope.INCIDENTS_READ,),
    secret_hash="hash",
    created_by="ana",
    created_at=NOW,
    updated_at=NOW,
    expires_at=NOW + timedelta(days=1),
)


def fill(connection: Connection) -> None:
    add_incidents(connection, 3, entities=[("ip", "192.0.2.7", "source"), ("user", "j\u00f6rg")])
    add_destination(connection)
    for state in ("pending", "dead", "delivered"):
        add_delivery(connection, state)
    add_event(connection, routed=False)
    add_session(connection)
    create_api_key(connection, KEY)
    rule = NewSuppression("r", "ana", "a test", NOW + timedelta(days=1), "edge", None, None, None)
    create_suppression(connection, rule, "ana", NOW)
    save_view(connection, "oidc:00u1", 'j\u00f6rg\'s "new"', {"entity": "a\\j\u00f6rg"}, NOW)
    details = {"ratio": 1.0, "tiny": 1e-7, "b": 1, "a": [None, "\u00e9'\""]}
    facts = {"at": NOW, "actor": "ana", "address": "local", "request_id": "", "target": None}
    audit.record(connection, audit.AuditRecord(action="test", details=details, **facts))


def count_rows(connection: Connection) -> dict[str, int]:
    return {
        layout.name: connection.scalars(
            select(func.count()).select_from(metadata.tables[layout.name])
        ).one()
        for layout in list_layouts()
    }


@pytest.fixture(params=["other", pytest.param("same", marks=pytest.mark.full)])
def target_url(request, database_url, tmp_path) -> URL:
    """An empty database, of the other kind or of the same."""
    if (database_url.get_backend_name() == "sqlite") == (request.param == "same"):
        return URL.create("sqlite", database=str(tmp_path / "target.db"))
    return make_url(request.getfixturevalue("postgres").create(f"target_{secrets.token_hex(8)}"))


@asynccontextmanager
async def opened(url: URL):
    database = open_database(url)
    yield database
    await database.close()
