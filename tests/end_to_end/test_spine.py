"""One incident's whole way, from the sensor's file to the receiver and the API."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from full_run import postgresql_in_full

from .service import until


@pytest.mark.full
async def test_an_alert_reaches_the_receiver_and_the_api(service, sensor, receiver):
    sensor.write(3)
    await service.start()
    await until(lambda: len(receiver.received) == 3)
    key = await service.make_key()
    listed = await service.get("/api/v1/incidents?severity=high", key)
    assert sorted(item["number"] for item in listed["incidents"]) == [1, 2, 3]
    detail = await service.get("/api/v1/incidents/2", key)
    assert detail["title"] == "EXAMPLE Exploit attempt 2"
    assert {"kind": "ip", "value": "198.51.100.7", "role": "source"} in detail["entities"]
    assert await service.stop() == 0


@postgresql_in_full
async def test_a_node_runs_on_uvloop(service, sensor, receiver):
    service.environment["TOCSIN_EVENT_LOOP"] = "uvloop"
    sensor.write(3)
    await service.start()
    await until(lambda: len(receiver.received) == 3)
    assert "uvloop" in await asyncio.to_thread(Path(f"/proc/{service.pid}/maps").read_text)
    listed = await service.get("/api/v1/incidents", await service.make_key())
    assert sorted(item["number"] for item in listed["incidents"]) == [1, 2, 3]
    assert await service.stop() == 0


@postgresql_in_full
async def test_appending_rotation_a_kill_and_a_restart_lose_and_double_nothing(
    service, sensor, receiver
):
    await service.start()
    sensor.write(20)
    await until(lambda: len(receiver.numbers) == 20)
    finish = sensor.write_half()
    await service.kill()
    finish()
    sensor.write(10)
    sensor.rotate()
    sensor.write(10)
    await service.start()
    sensor.write(9)
    sensor.rotate()
    sensor.write(10)
    await until(lambda: len(receiver.numbers) == 60)
    listed = await service.get("/api/v1/incidents?limit=200", await service.make_key())
    assert listed["total"] == sensor.written == 60
    titles = {event["data"]["title"] for _, event in receiver.received}
    assert len(titles) == len(receiver.ids) == 60


@pytest.mark.timeout(400)  # on PostgreSQL, leases of the killed node end first
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(10)])
async def test_a_kill_at_any_moment_loses_no_event(service, sensor, receiver, seed):
    chance = random.Random(seed)
    sensor.write(50)
    for _ in range(6):
        await service.start()
        sensor.write(chance.randrange(100))
        await receiver.wait_for(chance.randrange(60), of=sensor)
        await service.kill()
        if chance.random() < 0.5:
            sensor.rotate()
            sensor.write(5)
    await service.start()
    await until(lambda: len(receiver.numbers) == sensor.written)
    assert len(receiver.ids) == sensor.written
    if service.is_alone:  # on PostgreSQL, a store that was killed leaves a gap in the numbers
        assert receiver.numbers == set(range(1, sensor.written + 1))


@postgresql_in_full
@pytest.mark.full
async def test_a_receiver_that_fails_gets_the_event_again(service, sensor, receiver):
    receiver.statuses = [503, 500]
    sensor.write(1)
    await service.start()
    await until(lambda: len(receiver.received) == 1)
    assert receiver.statuses == []


@pytest.mark.full
@postgresql_in_full
async def test_what_did_not_arrive_is_listed_and_can_be_sent_again(service, sensor, receiver):
    receiver.statuses = [500] * 7  # four of one, which is then dead, and three of the other
    sensor.write(2)
    await service.start()

    async def listed(*options: str) -> list[dict]:
        _, text, _ = await service.command("deliveries", "list", "--json", *options)
        return json.loads(text)

    await until(lambda: len(receiver.numbers) == 1 and not receiver.statuses)
    async with asyncio.timeout(30):
        while not (dead := await listed("--state", "dead")):
            pass
    status, attempts, _ = await service.command("deliveries", "show", dead[0]["id"])
    assert (status, len(attempts.splitlines())) == (0, dead[0]["attempts"])
    assert await service.command("deliveries", "replay", "--destination", "soc") == (0, "1\n", "")
    await until(lambda: len(receiver.numbers) == 2)
    async with asyncio.timeout(30):
        while await listed("--state", "dead") or await listed("--state", "pending"):
            pass


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.full
async def test_a_second_serve_on_one_sqlite_database_is_refused(service):
    await service.start()
    service.environment["TOCSIN_PORT"] = "0"
    status, _, errors = await service.command("serve")
    assert status == 2
    assert "another `tocsin serve` (process " in errors


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.full
async def test_a_postgresql_without_its_schema_is_refused(service, postgres):
    service.environment["TOCSIN_DATABASE_URL"] = await asyncio.to_thread(postgres.create, "empty")
    status, _, errors = await service.command("serve")
    assert (status, "tocsin db upgrade" in errors) == (2, True)
    assert (await service.command("db", "upgrade"))[0] == 0
    status, token, _ = await service.command("admin", "token")
    assert (status, token.count(".")) == (0, 2)
    await asyncio.to_thread(postgres.drop, "empty")


@pytest.mark.full
@postgresql_in_full
async def test_malformed_lines_are_shown_with_their_reason(service, sensor, receiver):
    sensor.write(1)
    with sensor.path.open("ab") as file:
        file.write(b'{"event_type": "alert", "timesta\n[]\n')
    sensor.write(1)
    await service.start()
    await until(lambda: len(receiver.numbers) == 2)
    _, lines, _ = await service.command("quarantine")
    assert [line.split("\t")[0] for line in lines.splitlines()] == ["edge", "edge"]
    _, ledger, _ = await service.command("coverage")
    assert f"{sensor.path}\t0\t{sensor.path.stat().st_size}\tread" in ledger
