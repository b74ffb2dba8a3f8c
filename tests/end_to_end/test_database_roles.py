"""The three PostgreSQL roles of the operators' page, created by its own statements."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest

from tocsin.store import parse_url
from tocsin.store.tables import metadata

from .service import ForkedService, Sensor

PAGE = Path(__file__).parents[2] / "docs/operators/postgresql.md"
SECRET = {
    *("api_clients", "api_keys", "console_sessions", "derived_keys", "destinations"),
    *("encryption_keys", "signing_keys", "sign_in_links", "revoked_tokens", "idempotency_keys"),
    *("people", "passkeys", "passkey_links", "used_challenges", "saved_views"),
    *("audit", "audit_cuts", "audit_redactions", "erasures"),
}

pytestmark = pytest.mark.full  # migrates as the owner, and runs a node as the service


def read_statements() -> list[list[str]]:
    """Return the statements of each block of SQL in the section on roles."""
    section = PAGE.read_text().split("## Roles with least privilege")[1]
    blocks = re.findall(r"```sql\n(.+?)```", section, re.DOTALL)
    return [block.split(";\n")[:-1] for block in blocks]


class Roles:
    """The database of the page, for each of its roles."""

    def __init__(self, port: int) -> None:
        self._port = port

    def url(self, role: str) -> str:
        password = f"{role.removeprefix('tocsin_').upper()}_PASSWORD"
        return f"postgresql://{role}:{password}@127.0.0.1:{self._port}/tocsin"

    async def run(self, url: str, *statements: str) -> None:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    async def count_waiting_documents(self) -> tuple[int, int]:
        """Return the number of documents, and of pages in the waiting list of their index."""
        connection = await asyncpg.connect(self.url("tocsin_owner"))
        try:
            return (
                await connection.fetchval("SELECT count(*) FROM documents"),
                await connection.fetchval("SELECT gin_clean_pending_list('ix_documents_tokens')"),
            )
        finally:
            await connection.close()


@pytest.fixture
async def roles(postgres):
    """Creates roles and database as the page says, and removes them."""
    create, grant, _ = read_statements()
    roles, administrator = Roles(postgres.port), postgres.dsn("postgres")
    await roles.run(administrator, *create)
    await roles.run(postgres.dsn("tocsin"), *grant)
    yield roles
    await roles.run(administrator, "DROP DATABASE tocsin WITH (FORCE)")
    names = ("tocsin_owner", "tocsin_service", "tocsin_reader")
    await roles.run(administrator, *(f"DROP ROLE {name}" for name in names))


async def test_a_node_works_as_the_service_and_a_report_as_the_reader(roles, tmp_path, receiver):
    service = ForkedService(tmp_path, parse_url(roles.url("tocsin_owner")), receiver.destination)
    status, _, errors = await service.command("db", "upgrade")
    assert status == 0, errors
    await roles.run(roles.url("tocsin_owner"), *read_statements()[2])
    service.environment["TOCSIN_DATABASE_URL"] = roles.url("tocsin_service")
    sensor = Sensor(tmp_path / "eve.json")
    await service.start()
    try:
        sensor.write(5)
        await receiver.wait_for(5, sensor)
        for command in (["check"], ["prove"], ["db", "upgrade"]):
            status, out, errors = await service.command(*command)
            assert status == 0, (command, out, errors)
        _, out, _ = await service.command("doctor")
        assert "privileges" not in out
        assert "not allowed" not in out
        await assert_limits(roles)
        assert await service.stop() == 0
        assert await roles.count_waiting_documents() == (5, 0)
    finally:
        await service.kill()


async def assert_limits(roles: Roles) -> None:
    """Fail where the service or the reader may do what they have no need for."""
    service = [
        "CREATE TABLE more (id int)",
        "ALTER TABLE audit DISABLE TRIGGER ALL",
        "TRUNCATE incidents",
        "DROP TABLE incidents",
    ]
    reader = [
        *(f"SELECT FROM {table}" for table in SECRET),
        "START TRANSACTION READ WRITE; DELETE FROM incidents",
        "START TRANSACTION READ WRITE; CREATE TABLE more (id int)",
    ]
    refused = [("tocsin_service", each) for each in service]
    refused += [("tocsin_reader", each) for each in reader]
    for role, statement in refused:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await roles.run(roles.url(role), statement)
    readable = metadata.tables.keys() & set(re.findall(r"\w+", "".join(read_statements()[2])))
    assert not readable & SECRET
    await asyncio.gather(
        *(roles.run(roles.url("tocsin_reader"), f"SELECT FROM {table}") for table in readable)
    )
