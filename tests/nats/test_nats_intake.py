"""The intake on NATS JetStream, with a real server."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from nats.js.api import ClusterInfo, PeerInfo
from pydantic import ValidationError

from nats_servers import (
    NatsServer,
    Wire,
    find_ports,
    needs_servers,
    run_cluster,
    run_server,
)

pytest.importorskip("nats", reason="needs the package nats-py of the development requirements")

from tocsin import TryLater
from tocsin.testing import loopback_client, make_settings, make_tools
from tocsin.testing.conformance import IntakeConformance
from tocsin.testing.conformance.intakes import PROVIDER, make_push
from tocsin_nats.health import _find_stream_problems
from tocsin_nats.intake import RECEIVED, NatsIntake
from tocsin_nats.settings import NatsSettings

pytestmark = needs_servers


async def wait_until(condition, seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


async def has_current_replicas(intake: NatsIntake) -> bool:
    stream = await intake._connection.load_stream()
    return all(replica.current for replica in stream.cluster.replicas)


class TestNats(IntakeConformance):
    intake = NatsIntake

    @asynccontextmanager
    async def serve(self):
        with TemporaryDirectory() as folder:
            async with run_server(Path(folder)) as self.server:
                self.wire = Wire(self.server)
                async with self.wire.open() as url:
                    yield {"servers": [url], "replicas": 1, "max_mib": 10}

    async def wait_until_available(self, intake):
        await wait_until(lambda: intake.is_available)

    async def lose_stream(self):
        await self.server.kill()
        self.server.lose_data()
        await self.server.start()
        await asyncio.sleep(1.5)  # until the client has noticed

    async def stop_servers(self):
        await self.server.kill()

    async def lose_on_the_way(self, body):
        self.wire.breaks_at = body

    # What runs instead: a push that is lost without a disconnect, which takes no time
    @pytest.mark.full
    def test_a_push_that_is_lost_on_the_way_is_fetched_again(self):
        super().test_a_push_that_is_lost_on_the_way_is_fetched_again()


@asynccontextmanager
async def open_intake(server: NatsServer, **settings):
    client = loopback_client()
    values = {"servers": [server.url], "replicas": 1, "max_mib": 10, **settings}
    made = NatsIntake(make_settings(NatsIntake, "intake", **values), make_tools(client, "intake"))
    await made.start()
    try:
        yield made
    finally:
        await made.close()
        await client.close()


async def test_servers_are_refused_unless_each_push_is_written_to_the_disk_at_once(tmp_path):
    async with run_server(tmp_path / "lazy", extra_jetstream="") as server:
        async with open_intake(server, monitoring=[server.monitoring]) as intake:
            [problem] = (await intake.check()).problems
        assert f"{server.monitoring} acknowledges a push before it writes it" in problem
    async with run_server(tmp_path / "always") as server:
        async with open_intake(server) as intake:
            [problem] = (await intake.check()).problems
        assert "of 1 servers, 0 responded" in problem
        async with open_intake(server, monitoring=[server.monitoring]) as intake:
            health = await intake.check()
    assert health.problems == ()
    assert health.detail.startswith("nats-server 2.")


async def test_a_stream_that_differs_from_the_settings_and_is_nearly_full_is_a_problem(tmp_path):
    async with run_server(tmp_path) as server:
        async with open_intake(server, max_mib=1) as intake:
            await wait_until(lambda: intake.is_available)
            await intake.publish(make_push("1", body=b"x" * 1_000_000))
        settings = {"replicas": 3, "keep_for": "30d", "monitoring": [server.monitoring]}
        async with open_intake(server, max_mib=2, **settings) as intake:
            problems = "\n".join((await intake.check()).problems)
    assert "the stream keeps each push on 1 of the servers, and `replicas` is 3" in problems
    assert "the stream keeps pushes for 168 h, and `keep_for` is 720 h" in problems
    assert "room for 1 MiB, and `max_mib` is 2" in problems
    assert "the stream is 95% full" in problems


async def test_refused_credentials_are_named(tmp_path):
    users = 'authorization { users: [{ user: "tocsin", password: "of-the-server" }] }'
    async with (
        run_server(tmp_path, extra=users) as server,
        open_intake(server, user="tocsin", password="of-another") as intake,
    ):
        with pytest.raises(TryLater, match="the servers refuse the credentials"):
            await intake.check()


async def test_a_stream_that_is_larger_than_the_store_is_refused_with_both_settings(tmp_path):
    async with run_server(tmp_path) as server, open_intake(server, max_mib=2000) as intake:
        with pytest.raises(TryLater, match=r"no room for a stream of 2,000 MiB.*max_file_store"):
            await intake.check()


async def test_each_server_of_a_cluster_is_checked(tmp_path):
    async with run_cluster(tmp_path) as servers:
        addresses = [server.monitoring for server in servers]
        repeated = [*addresses[:2], addresses[1]]
        async with open_intake(servers[0], replicas=3, monitoring=repeated) as intake:
            await wait_until(lambda: intake.is_available)
            async with asyncio.timeout(15):
                while not await has_current_replicas(intake):  # noqa: ASYNC110 - other processes
                    await asyncio.sleep(0.1)
            [problem] = (await intake.check()).problems
        await servers[2].kill()
        async with open_intake(servers[0], replicas=3, monitoring=addresses) as intake:
            await wait_until(lambda: intake.is_available)
            problems = "\n".join((await intake.check()).problems)
    assert "of 3 servers, 2 responded" in problem
    assert f"monitoring: {addresses[2]}: " in problems
    assert "TryLater" not in problems


async def test_a_replica_that_the_others_have_not_seen_for_long_is_a_problem(tmp_path):
    async with run_server(tmp_path) as server, open_intake(server) as intake:
        await wait_until(lambda: intake.is_available)
        stream = await intake._connection.load_stream()
    active = PeerInfo(name="n2", current=True, offline=False, active=10**9)
    gone = replace(active, name="n3", active=76 * 10**9)
    stream.cluster = ClusterInfo(replicas=[active, gone])
    problems = [*_find_stream_problems(stream, intake.settings)]
    assert problems == ["the replica n3 is not current; it was last seen 76 s ago"]


async def test_a_full_store_refuses_pushes_and_keeps_what_it_has(tmp_path):
    async with run_server(tmp_path) as server, open_intake(server, max_mib=1) as intake:
        await wait_until(lambda: intake.is_available)
        for number in range(4):
            await intake.publish(make_push(str(number), body=b"x" * 200_000))
        for number in range(4, 6):
            with pytest.raises(TryLater, match="maximum bytes"):
                await intake.publish(make_push(str(number), body=b"x" * 300_000))
        page = await intake.fetch(PROVIDER, None, 100)
        assert [push.sequence for push in page.pushes] == [1, 2, 3, 4]


async def test_an_intake_without_pushes_is_empty_for_a_busy_node_too(tmp_path, monkeypatch):
    monkeypatch.setattr("tocsin_nats.intake.WAIT_SECONDS", 0.3)

    async def block_again_and_again():
        while True:
            time.sleep(0.05)  # noqa: ASYNC251 - a busy loop notices the end of the wait late
            await asyncio.sleep(0)

    async with run_server(tmp_path) as server, open_intake(server) as intake:
        await wait_until(lambda: intake.is_available)
        busy = asyncio.create_task(block_again_and_again())
        pages = [await intake.fetch(PROVIDER, None, 100) for _ in range(3)]
        busy.cancel()
    assert [list(page.pushes) for page in pages] == [[], [], []]


async def test_closing_ends_also_if_the_client_swallows_the_cancellation(monkeypatch):
    entered = asyncio.Event()

    async def connect_to_the_end(**_):
        if entered.is_set():
            await asyncio.sleep(60)
        entered.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        raise OSError("no server")

    monkeypatch.setattr("nats.connect", connect_to_the_end)
    tools = make_tools(client := loopback_client(), "intake")
    intake = NatsIntake(make_settings(NatsIntake, "intake", servers=["nats://127.0.0.1:1"]), tools)
    await intake.start()
    await entered.wait()
    async with asyncio.timeout(5):
        await intake.close()
    await client.close()


async def test_a_push_of_which_only_the_next_one_arrived_is_read_again(tmp_path):
    async with run_server(tmp_path) as server, open_intake(server) as intake:
        await wait_until(lambda: intake.is_available)
        await intake.publish(make_push("1"))
        end = (await intake.fetch(PROVIDER, None, 10)).end
        await intake.acknowledge(PROVIDER, end)
        await intake.publish(make_push("2"))
        await intake._cursors[PROVIDER].subscription.fetch(1)  # it arrives nowhere else
        await intake.publish(make_push("3"))
        with pytest.raises(TryLater, match="delivery 2 was expected and 3 found"):
            await intake.fetch(PROVIDER, end, 10)
        page = await intake.fetch(PROVIDER, end, 10)
        assert [push.body for push in page.pushes] == [b"2", b"3"]


@pytest.mark.parametrize("header", [None, "2026-11-28T12:00:00", "yesterday"])
async def test_a_push_of_another_publisher_has_the_time_of_its_message(tmp_path, header):
    async with run_server(tmp_path) as server, open_intake(server) as intake:
        await wait_until(lambda: intake.is_available)
        headers = {} if header is None else {RECEIVED: header}
        await intake._connection.jetstream.publish(f"tocsin.intake.{PROVIDER}", headers=headers)
        [push] = (await intake.fetch(PROVIDER, None, 10)).pushes
        assert abs(datetime.now(UTC) - push.received_at) < timedelta(minutes=5)


async def test_an_old_server_is_refused_with_its_version():
    async def answer(reader, writer):
        writer.write(b'INFO {"server_id":"x","version":"2.9.10","max_payload":1048576}\r\n')
        while line := await reader.readline():
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
        writer.close()

    [port] = find_ports(1)
    async with await asyncio.start_server(answer, "127.0.0.1", port) as server:
        old = NatsServer("old", Path(), port, 0)
        async with open_intake(old) as intake:
            [problem] = (await intake.check()).problems
        server.close()
    assert problem == "found nats-server 2.9.10; use 2.10 or later"


async def test_servers_that_are_away_fail_the_check():
    away = NatsServer("away", Path(), *find_ports(2))
    async with open_intake(away) as intake:
        assert not intake.is_available
        with pytest.raises(TryLater, match="no NATS server is connected"):
            await intake.check()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"servers": ["nats://nats.example.org:4222"]}, "allow_plain"),
        ({"servers": ["http://127.0.0.1"]}, "tls://host:port"),
        ({"servers": ["tls://ana:secret@nats.example.org"]}, "`user` and `password`"),
        ({"servers": ["tls://a.example.org"], "replicas": 2}, "replicas"),
    ],
)
def test_wrong_settings_are_explained(values, expected):
    with pytest.raises(ValidationError, match=expected):
        NatsSettings.model_validate({"plugin": "nats", **values})
