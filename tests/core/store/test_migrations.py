"""What an earlier version stored is still there after the upgrade."""

from __future__ import annotations

from datetime import timedelta

import pytest
from alembic import command
from sqlalchemy import URL, Connection, make_url, text

from tocsin.credentials import list_api_keys, load_api_key
from tocsin.store import open_database, upgrade
from tocsin.store.opening import _alembic
from tocsin.store.tables import EPOCH


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path) -> URL:
    if request.param == "sqlite":
        return make_url(f"sqlite:///{tmp_path}/old.db")
    return make_url(request.getfixturevalue("postgres").create(f"old_{tmp_path.name}"[:60]))


def as_of_the_spine(connection: Connection) -> None:
    config = _alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")
    row = {"id": "1", "key_id": "0123456789ABCDEF", "now": 1_000_000, "end": 9_000_000}
    scopes = '["incidents:read"]'
    connection.execute(
        text(
            "INSERT INTO api_keys VALUES (:id, :key_id, 'Nächte', 'Shift', "
            f"'{scopes}', 'a hash', 'ana', :now, :end)"
        ),
        row,
    )


async def test_a_key_of_the_first_version_is_still_one(empty_url):
    database = open_database(empty_url)
    await database.write(as_of_the_spine)
    await upgrade(database)
    key = await database.read(load_api_key, "0123456789ABCDEF")
    assert key is not None
    assert (key.prefix, key.scopes, key.secret_hash) == ("sk_live_", ("incidents:read",), "a hash")
    assert key.updated_at == key.created_at == EPOCH + timedelta(seconds=1)
    assert key.disabled_at is key.last_used_at is key.previous_hash is None
    for words in ("NÄCHTE", "shift", "ana", "incidents:read"):
        assert (await database.read(list_api_keys, search=words)).total == 1
    await database.close()
