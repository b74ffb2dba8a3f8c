"""Deliveries of Tocsin, Node-RED, n8n and Apprise: the same events to one receiver, in one run.

Node-RED comes from `.ci/components`, or from npm for the run, Apprise from PyPI into a virtual
environment for the run, and n8n, where `TOCSIN_N8N` names a folder for it, from npm. Tocsin stores
each event and each attempt durably; the others keep nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
import venv
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.comparison import OURS, interleave, report_rates
from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.delivery import CONCURRENCY, EVENTS, SECRET, Bare, Deliveries, channels
from bench.flow_servers import FlowServer, list_flow_servers
from bench.receiver import Request, count_received, receive
from bench.subprocesses import child
from tocsin.clock import SystemClock
from tocsin.node.configuration import apply_file

APPRISE = "apprise==2.2.0"
_PATIENCE = 300  # seconds
Load = Callable[[], Awaitable[list[Request]]]
"""Returns the requests to send."""

_SEND_WITH_APPRISE = """
import asyncio, json, sys
import apprise

async def send(one, waiting):
    for body in waiting:
        assert await one.async_notify(title="incident-alert", body=body)

async def main():
    one = apprise.Apprise()
    assert one.add(sys.argv[1])
    for line in sys.stdin:
        waiting = iter(json.loads(line))
        await asyncio.gather(*(send(one, waiting) for _ in range(int(sys.argv[2]))))
        print("sent", flush=True)

asyncio.run(main())
"""


def run(rounds: int) -> None:
    """Compare on every kind of database."""
    os.environ["BENCH_SECRET"] = SECRET
    for kind in KINDS:
        with child(receive) as port, new_urls(kind) as new_url:
            asyncio.run(_measure(kind, new_url, f"http://127.0.0.1:{port}", rounds))


async def _measure(kind: str, new_url: NewUrl, url: str, rounds: int) -> None:
    database = await open_new(new_url)
    async with channels(url) as (configuration, made):
        await database.write(apply_file, configuration, "bench", SystemClock().now())
        node = Deliveries(database, configuration, made)
        bare = Bare(node, url)

        async def load() -> list[Request]:
            return await database.read(bare.load_requests)

        with TemporaryDirectory(prefix="tocsin-bench-") as folder:
            async with AsyncExitStack() as peers:
                variants = {
                    OURS: node.measure,
                    "minimal aiohttp loop": bare.measure,
                    "Apprise, unsigned": await peers.enter_async_context(
                        _apprise(Path(folder), url, load)
                    ),
                }
                for name, start in list_flow_servers().items():
                    server = await peers.enter_async_context(start(Path(folder), f"{url}/hook"))
                    variants[name] = partial(_measure_flow, server, url, load)
                rates = await interleave(variants, rounds)
    await database.close()
    report_rates(f"Deliveries of {EVENTS:,} events, {kind}", "deliveries", rates)


async def _measure_flow(server: FlowServer, url: str, load: Load) -> float:
    """Return the rate of a flow that takes all events in one request."""
    events = [[head["webhook-id"], body.decode()] for head, body in await load()]
    expected = await count_received(url) + len(events)
    begin = time.perf_counter()
    await server.send(events)
    async with asyncio.timeout(_PATIENCE):
        while await count_received(url) < expected:  # noqa: ASYNC110 - asks a server
            await asyncio.sleep(0.02)
    return len(events) / (time.perf_counter() - begin)


@asynccontextmanager
async def _apprise(
    folder: Path, url: str, load: Load
) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Run a process that sends the bodies of the events with Apprise."""
    place = folder / "apprise"
    await asyncio.to_thread(venv.create, place, with_pip=True)
    python = str(place / "bin" / "python")
    installing = (python, "-m", "pip", "install", "--quiet", APPRISE)
    assert await (await asyncio.create_subprocess_exec(*installing)).wait() == 0
    address = f"{url.replace('http://', 'json://')}/hook"
    process = await asyncio.create_subprocess_exec(
        python,
        "-c",
        _SEND_WITH_APPRISE,
        address,
        str(CONCURRENCY),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def measure() -> float:
        bodies = [body.decode() for _, body in await load()]
        begin = time.perf_counter()
        stdin.write(json.dumps(bodies).encode() + b"\n")
        assert await asyncio.wait_for(stdout.readline(), _PATIENCE) == b"sent\n"
        return len(bodies) / (time.perf_counter() - begin)

    try:
        yield measure
    finally:
        process.terminate()
        await process.wait()
