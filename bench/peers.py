"""Deliveries of Tocsin, Node-RED and Apprise: the same events to the same receiver, in one run.

Node-RED comes from `.ci/components`, Apprise from PyPI into a virtual environment for the run.
Tocsin stores each event and each attempt durably; the others keep nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from bench.comparison import OURS, interleave, report_rates
from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.delivery import CONCURRENCY, EVENTS, SECRET, Bare, Deliveries, channels
from bench.receiver import Request, count_received, receive
from bench.subprocesses import child, free_port
from tocsin.clock import SystemClock
from tocsin.node.configuration import apply_file

APPRISE = "apprise==2.2.0"
_ROOT = Path(__file__).parents[1]
_NODE_RED = Path(os.environ.get("TOCSIN_NODE_RED", _ROOT / ".components" / "node-red"))
_PATIENCE = 300  # seconds
Load = Callable[[], Awaitable[list[Request]]]
"""Returns the requests to send."""

# Standard Webhooks 1.0.0, as the webhook channel of Tocsin signs
_SIGN = """
const [id, body] = msg.payload;
const moment = Math.floor(Date.now() / 1000);
const key = Buffer.from(env.get("BENCH_SECRET").slice("whsec_".length), "base64");
const signed = crypto.createHmac("sha256", key).update(`${id}.${moment}.${body}`).digest("base64");
msg.payload = body;
msg.headers = { "content-type": "application/json", "webhook-id": id,
    "webhook-timestamp": `${moment}`, "webhook-signature": `v1,${signed}` };
return msg;
"""
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
            async with (
                _node_red(Path(folder), url, load) as node_red,
                _apprise(Path(folder), url, load) as apprise,
            ):
                variants = {
                    OURS: node.measure,
                    "minimal aiohttp loop": bare.measure,
                    "Node-RED": node_red,
                    "Apprise, unsigned": apprise,
                }
                rates = await interleave(variants, rounds)
    await database.close()
    report_rates(f"Deliveries of {EVENTS:,} events, {kind}", "deliveries", rates)


@asynccontextmanager
async def _node_red(
    folder: Path, url: str, load: Load
) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Run a flow that takes events in one request, and signs and posts each of them."""
    program = _NODE_RED / "node_modules/node-red/red.js"
    if not program.is_file():
        sys.exit(f"no Node-RED is in {_NODE_RED}; run .ci/components, or set TOCSIN_NODE_RED")
    port = free_port()
    settings = {
        "uiHost": "127.0.0.1",
        "uiPort": port,
        "userDir": str(folder),
        "flowFile": "flows.json",
        "httpAdminRoot": False,
        "apiMaxLength": "50mb",
        "telemetry": {"enabled": False, "updateNotification": False},
    }
    (folder / "settings.js").write_text(f"module.exports = {json.dumps(settings)}")
    (folder / "flows.json").write_text(json.dumps(_build_flow(f"{url}/hook")))
    process = await asyncio.create_subprocess_exec(
        "node",
        str(program),
        "--settings",
        str(folder / "settings.js"),
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "BENCH_SECRET": SECRET},
        stdout=subprocess.DEVNULL,
    )
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def measure() -> float:
            events = [[head["webhook-id"], body.decode()] for head, body in await load()]
            expected = await count_received(url) + len(events)
            begin = time.perf_counter()
            async with session.post("/events", json=events) as response:
                response.raise_for_status()
            await _until_received(url, expected)
            return len(events) / (time.perf_counter() - begin)

        try:
            async with asyncio.timeout(60):
                while not await _is_ready(session):  # noqa: ASYNC110 - asks a server
                    await asyncio.sleep(0.1)
            yield measure
        finally:
            process.terminate()
            await process.wait()


def _build_flow(target: str) -> list[dict[str, Any]]:
    node: dict[str, Any] = {"z": "tab", "x": 100, "y": 100}
    crypto = {"var": "crypto", "module": "crypto"}
    post = {"method": "POST", "ret": "txt", "url": target, "persist": True, "headers": []}
    return [
        {"id": "tab", "type": "tab", "label": "Events"},
        node
        | {"id": "in", "type": "http in", "url": "/events", "method": "post"}
        | {"wires": [["taken", "split"]]},
        node | {"id": "taken", "type": "http response", "statusCode": "202", "wires": []},
        node
        | {"id": "split", "type": "split", "splt": "\\n", "spltType": "str"}
        | {"arraySplt": 1, "arraySpltType": "len", "wires": [["sign"]]},
        node
        | {"id": "sign", "type": "function", "func": _SIGN, "outputs": 1, "libs": [crypto]}
        | {"wires": [["post"]]},
        node | {"id": "post", "type": "http request", **post, "wires": [[]]},
    ]


async def _is_ready(session: aiohttp.ClientSession) -> bool:
    try:
        async with session.post("/events", json=[]) as response:
            return response.status == 202
    except aiohttp.ClientConnectionError:
        return False


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


async def _until_received(url: str, expected: int) -> None:
    async with asyncio.timeout(_PATIENCE):
        while await count_received(url) < expected:  # noqa: ASYNC110 - asks a server
            await asyncio.sleep(0.02)
