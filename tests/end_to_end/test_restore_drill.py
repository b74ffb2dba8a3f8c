"""A backup of a running service, and the service that goes on with it on another day."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence

import pytest
from sqlalchemy import URL, Row, make_url, select

from end_to_end.service import Receiver, Sensor, Service, destination, until
from ports import free_port
from tocsin.store import JUMP, open_database
from tocsin.store.tables import deliveries


@pytest.fixture
def next_url(migrated_url, request) -> URL:
    """The database to restore into: on PostgreSQL another one, since it must be empty."""
    if migrated_url.get_backend_name() == "sqlite":
        return migrated_url
    server = request.getfixturevalue("postgres")
    request.addfinalizer(lambda: server.drop("restored"))  # noqa: PT021 - of one kind alone
    return make_url(server.create("restored"))


@pytest.mark.full
@pytest.mark.timeout(240)
async def test_a_restored_service_repeats_no_alert_of_the_backup_and_sends_nothing_unasked(
    tmp_path, migrated_url, next_url
):
    sensor = Sensor(tmp_path / "eve.json")
    down = destination("down", f"http://127.0.0.1:{free_port()}/hook", retry_schedule=["1h"] * 3)
    async with Receiver() as receiver:
        service = Service(tmp_path, migrated_url, receiver.destination, down)
        await service.start()
        sensor.write(5)
        await until(lambda: len(receiver.received) == 5)
        await asyncio.sleep(1)  # until the attempts at the other are stored
        status, out, errors = await service.command("backup", "create", "--json", "--keep", "1")
        assert status == 0, errors
        [made] = json.loads(out)
        sensor.write(3)
        await until(lambda: len(receiver.received) == 8)
        await asyncio.sleep(1.5)  # until the head is stored
        await service.kill()
        assert receiver.numbers == set(range(1, 9))

        service.database = next_url
        service.environment["TOCSIN_DATABASE_URL"] = next_url.render_as_string(hide_password=False)
        replace = ["--replace"] if service.is_alone else []
        status, out, errors = await service.command("backup", "restore", made["name"], *replace)
        assert status == 0, errors
        assert "deliveries on hold: 5, events on hold: 0" in out
        await service.start(is_applied=True)
        await until(lambda: len(receiver.received) == 11)
        sensor.write(1)
        await until(lambda: len(receiver.received) == 12)
        # the five of the backup alerted once; the three after it again, with numbers of their own
        counts = Counter(event["data"]["title"] for _, event in receiver.received)
        assert sorted(counts.values()) == [1] * 6 + [2] * 3
        assert [number for number in sorted(receiver.numbers) if number > 8] == [
            8 + JUMP + number for number in range(1, 5)
        ]
        assert len(receiver.ids) == 12
        status, out, _ = await service.command("prove")
        assert status == 1
        assert "incidents 6 to 8 were stored but are missing: restored from the backup" in out
        await check_holds(service)
        await service.stop()
        await service.start(is_applied=True)  # which retries what else is on hold
        await check_holds(service)
        status, out, _ = await service.command("backup", "release")
        assert (status, out) == (0, "released deliveries: 5, released events: 0\n")
        assert await load_held(service) == []
        await service.stop()


async def check_holds(service: Service) -> None:
    """Fail unless what was pending in the backup is on hold."""
    held = await load_held(service)
    assert [row.destination for row in held] == ["down"] * 5
    assert "`tocsin backup release`" in held[0].reason


async def load_held(service: Service) -> Sequence[Row]:
    database = open_database(service.database)
    on_hold = select(deliveries).where(deliveries.c.state == "on_hold")
    try:
        return await database.read(lambda connection: connection.execute(on_hold).all())
    finally:
        await database.close()
