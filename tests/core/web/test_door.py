"""What is still in memory at the end is written, each part whatever becomes of the others."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select, text

from tocsin.store.tables import audit

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def count_entries(api) -> int:
    statement = select(func.count()).select_from(audit)
    return await api.services.database.read(lambda connection: connection.scalar(statement))


async def test_the_end_writes_uses_and_refusals(api):
    headers = await api.reader()
    await api.client.get("/api/v1/incidents", headers=headers)
    await api.client.get("/api/v1/incidents", headers={"X-API-Key": "malformed"})
    await api.door.finish()
    assert await count_entries(api) == 1
    listed = await api.client.get("/api/admin/api-keys", headers=await api.admin())
    [key] = (await listed.json())["api_keys"]
    assert key["last_used_at"] is not None


async def test_what_cannot_be_written_keeps_nothing_else_from_it(api):
    headers = await api.reader()
    await api.client.get("/api/v1/incidents", headers=headers)
    await api.client.get("/api/v1/incidents", headers={"X-API-Key": "malformed"})
    drop = text("DROP TABLE api_keys")
    await api.services.database.write(lambda connection: connection.execute(drop) and None)
    await api.door.finish()
    assert await count_entries(api) == 1
