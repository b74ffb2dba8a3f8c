"""Two nodes and PostgreSQL in two networks, whose link is cut without a word.

Run as root in a new network namespace, with the path of a working folder. PostgreSQL, the receiver
and one node are on the near side of a bridge, the other node and a client with two waits are on the
far side. Prints the measured seconds as JSON.
"""

# ruff: noqa: ASYNC110 - it waits for other processes
from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import aiohttp
import asyncpg

sys.path.insert(0, str(Path(__file__).parents[1]))

from sqlalchemy import Connection, make_url, text

from end_to_end.service import Sensor, Service, until
from faults.conftest import account, wait_for_nodes
from faults.oracle import Oracle
from faults.receiver import Receiver
from network_links import NEAR, NETWORK, Link, open_links
from postgres import Postgres
from tocsin.store import open_database, parse_url

FAR = "10.77.0.2"


async def wait_at_the_far_end(url: str) -> None:
    """Have one answer under way and send one request when the link is cut; print both waits."""
    database = open_database(parse_url(url))

    def ask(connection: Connection, seconds: int) -> None:
        connection.execute(text("SET statement_timeout = 0"))
        connection.execute(text(f"SELECT pg_sleep({seconds})"))

    async def wait(seconds: int) -> float:
        begun = monotonic()
        with suppress(Exception):  # whatever its connection ends with
            await database.write(ask, seconds)
        return monotonic() - begun

    await asyncio.gather(wait(0), wait(0))  # two connections of the pool
    waiting = asyncio.create_task(wait(600))
    await asyncio.sleep(0.5)
    sys.stdout.write("waiting\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    sent = await wait(0)
    sys.stdout.write(json.dumps({"sent": sent, "awaited": await waiting}) + "\n")
    sys.stdout.flush()


def make_node(folder: Path, server: Postgres, host: str, receiver: Receiver) -> Service:
    """Return a node that is reached at an address of the link."""
    folder.mkdir()
    folder.joinpath("eve.json").symlink_to(folder.parent / "eve.json")
    url = make_url(server.dsn("cut")).set(host=NEAR if host == FAR else "127.0.0.1")
    block = receiver.destination(retry_schedule=["100ms"] * 3)
    block = block.replace("127.0.0.1", NEAR).replace("127.0.0.0/8", NETWORK)
    node = Service(folder, url, block)
    node.url = f"http://{host}:{node.port}"
    node.environment |= {"TOCSIN_HOST": host, "TOCSIN_TLS_TERMINATED": "true"}
    return node


async def count_idle(server: Postgres) -> int:
    """Return how many sessions of the far side wait for a statement."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE client_addr = $1 AND state = 'idle'"
    connection = await asyncpg.connect(server.dsn("cut"))
    try:
        return await connection.fetchval(query, FAR)
    finally:
        await connection.close()


async def main(folder: Path, server: Postgres, link: Link) -> None:
    """Cut the link under load, and print what each side needs until it goes on."""
    async with Receiver("0.0.0.0") as receiver:
        cut = make_node(folder / "cut", server, FAR, receiver)
        cut.prefix = link.prefix
        other = make_node(folder / "other", server, "127.0.0.1", receiver)
        try:
            figures = await measure(server, link, receiver.oracle, cut, other)
        finally:
            await cut.kill()
            await other.kill()
    sys.stdout.write(json.dumps(figures) + "\n")


async def measure(
    server: Postgres, link: Link, oracle: Oracle, cut: Service, other: Service
) -> dict[str, object]:
    """Return the seconds from the cut, and how the nodes ended."""
    sensor = Sensor(cut.folder.parent / "eve.json")
    status, _, errors = await cut.command("db", "upgrade")
    assert status == 0, errors
    await cut.start()  # which reads the feed, and is the only one that delivers
    sensor.write(10)
    await until(lambda: len(oracle.accepted("soc")) == 10)
    await other.start(is_applied=True)
    client = await asyncio.create_subprocess_exec(
        *(*link.prefix, sys.executable, __file__),
        cut.database.render_as_string(hide_password=False),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    assert await client.stdout.readline() == b"waiting\n"
    figures: dict[str, object] = {"idle_before": await count_idle(server)}
    link.cut()
    begun = monotonic()
    client.stdin.write(b"\n")
    sensor.write(100)
    await until(lambda: len(oracle.accepted("soc")) == 110, 60)
    figures["other"] = monotonic() - begun
    async with asyncio.timeout(120):
        while await count_idle(server):
            await asyncio.sleep(0.2)
        figures["idle"] = monotonic() - begun
        figures |= json.loads(await client.stdout.readline())
    link.plug()
    sensor.write(10)
    await until(lambda: len(oracle.accepted("soc")) == 120, 60)
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while not await cut.is_ready(session):
            await asyncio.sleep(0.2)
    database = open_database(other.database)
    await wait_for_nodes(database)
    await account(database, oracle)
    await database.close()
    return figures | {"statuses": [await node.stop() for node in (cut, other)]}


def main_near(folder: Path) -> None:
    """Make the networks and the server, and end them."""
    with (
        open_links(FAR) as [link],
        TemporaryDirectory() as home,  # where the server's user finds it
        Postgres(Path(home), hosts=f"127.0.0.1,{NEAR}") as server,
    ):
        with (server.home / "data/pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {NETWORK} scram-sha-256\n")
        server.reload()
        server.create("cut")
        asyncio.run(main(folder, server, link))


if __name__ == "__main__":
    if sys.argv[1].startswith("postgresql"):
        asyncio.run(wait_at_the_far_end(sys.argv[1]))
    else:
        main_near(Path(sys.argv[1]))
