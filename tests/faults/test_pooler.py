"""A node that reaches PostgreSQL through a real PgBouncer, in session or transaction mode."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from end_to_end.service import Service, until
from pgbouncer import WHY_NOT, pooling
from postgres import USER
from tocsin.store.session_limits import SESSION_LIMITS

from .conftest import account_for
from .pushes import Sender

pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
]


@pytest.fixture
async def limited_role(migrated_url):
    """Gives the role the limits that a pooler in transaction mode cannot set."""

    async def execute(*statements: str) -> None:
        connection = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
        for statement in statements:
            await connection.execute(f"ALTER ROLE {USER} IN DATABASE shared {statement}")
        await connection.close()

    await execute(*(f"SET {name} = {value}" for name, value in SESSION_LIMITS.items()))
    yield
    await execute("RESET ALL")


@pytest.mark.full  # a node in a process of its own, and a pooler that is away for a second
@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.usefixtures("limited_role")
async def test_pgbouncer_restarted_under_load_loses_nothing(
    tmp_path, postgres, migrated_url, receiver, mode
):
    with pooling(tmp_path, postgres, migrated_url, mode) as pooler:
        service = Service(tmp_path, pooler.url)
        if mode == "transaction":
            direct = migrated_url.render_as_string(hide_password=False)
            service.environment["TOCSIN_DATABASE_SESSION_URL"] = direct
        sender = Sender(service, receiver.destination(retry_schedule=["100ms"] * 3))
        try:
            await service.start()
            pushing = asyncio.create_task(sender.run())
            delivered = receiver.oracle.accepted
            await until(lambda: len(delivered("soc")) >= 50)
            pooler.kill()
            await until(lambda: sender.repeated > 0)
            await asyncio.sleep(1)
            pooler.start()
            before = sender.accepted
            await until(lambda: sender.accepted >= before + 100)
            pushing.cancel()
            await asyncio.wait([pushing])
            await until(lambda: len(delivered("soc")) >= sender.accepted)
            service.database = migrated_url  # the account prepares its statements
            await account_for(service, receiver.oracle)
            assert await service.stop() == 0
        finally:
            await service.kill()
    # the last one may have been stored without its sender having read the answer
    assert len(delivered("soc")) - sender.accepted in (0, 1)
