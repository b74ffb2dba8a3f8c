"""Servers of flows that sign and post events: Node-RED and n8n."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp

from bench.delivery import SECRET
from bench.subprocesses import free_port

N8N = "1.123.81"
NODE_RED = "4.1.15"
_ROOT = Path(__file__).parents[1]
_NODE_RED = Path(os.environ.get("TOCSIN_NODE_RED", _ROOT / ".components" / "node-red"))
_START = 180  # seconds

# Standard Webhooks 1.0.0, as the webhook channel of Tocsin signs
_SIGN = """
const moment = Math.floor(Date.now() / 1000);
const sign = (secret, id, body) => {
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    return crypto.createHmac("sha256", key).update(`${id}.${moment}.${body}`).digest("base64");
};
const head = (secret, id, body) => ({ "content-type": "application/json", "webhook-id": id,
    "webhook-timestamp": `${moment}`, "webhook-signature": `v1,${sign(secret, id, body)}` });
"""
_SIGN_IN_NODE_RED = f"""{_SIGN}
const [id, body] = msg.payload;
msg.payload = body;
msg.headers = head(env.get("BENCH_SECRET"), id, body);
return msg;
"""
_SIGN_IN_N8N = f"""const crypto = require("crypto");{_SIGN}
return $input.first().json.body.map(([id, body]) =>
    ({{ json: {{ body, headers: JSON.stringify(head($env.BENCH_SECRET, id, body)) }} }}));
"""


@dataclass(frozen=True)
class FlowServer:
    """A running server whose flow takes a list of events, and signs and posts each of them."""

    session: aiohttp.ClientSession
    path: str

    async def send(self, events: Sequence[Sequence[str]]) -> None:
        """Hand over events, each an ID and a body; the server has accepted them, not sent them."""
        async with self.session.post(self.path, json=events) as response:
            response.raise_for_status()

    async def wait_until_ready(self) -> None:
        """Wait until the flow takes events."""
        async with asyncio.timeout(_START):
            while not await self._is_ready():  # noqa: ASYNC110 - asks a server
                await asyncio.sleep(0.1)

    async def _is_ready(self) -> bool:
        try:
            async with self.session.post(self.path, json=[]) as response:
                return response.ok and b"starting up" not in await response.read()
        except aiohttp.ClientConnectionError:
            return False


Start = Callable[[Path, str], AbstractAsyncContextManager[FlowServer]]
"""Runs a server with its files in a folder; its flow posts to an address."""


def list_flow_servers() -> Mapping[str, Start]:
    """Return the servers to compare with: Node-RED, and n8n if `TOCSIN_N8N` is set."""
    return {"Node-RED": _run_node_red} | ({"n8n": _run_n8n} if os.environ.get("TOCSIN_N8N") else {})


@asynccontextmanager
async def _run_node_red(folder: Path, target: str) -> AsyncIterator[FlowServer]:
    program = await asyncio.to_thread(_find_node_red, folder / "program")
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
    (folder / "flows.json").write_text(json.dumps(_build_node_red_flow(target)))
    command = ("node", str(program), "--settings", str(folder / "settings.js"))
    async with _serve(command, _environment(folder), port, "/events") as server:
        yield server


def _find_node_red(folder: Path) -> Path:
    """Return the program that `.ci/components` installs; without it, install one in `folder`."""
    program = Path("node_modules/node-red/red.js")
    if not (_NODE_RED / program).is_file():
        package = f"node-red@{NODE_RED}"
        _run_npm(folder, "install", package, "--ignore-scripts", "--no-audit", "--no-fund")
        return folder / program
    return _NODE_RED / program


def _run_npm(folder: Path, *command: str) -> None:
    npm = ["npm", *command, f"--prefix={folder}", "--loglevel=error"]
    subprocess.run(npm, check=True, stdout=subprocess.DEVNULL)


def _build_node_red_flow(target: str) -> list[dict[str, Any]]:
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
        | {"id": "sign", "type": "function", "func": _SIGN_IN_NODE_RED, "outputs": 1}
        | {"libs": [crypto], "wires": [["post"]]},
        node | {"id": "post", "type": "http request", **post, "wires": [[]]},
    ]


@asynccontextmanager
async def _run_n8n(folder: Path, target: str) -> AsyncIterator[FlowServer]:
    """Run n8n with the settings under which it was fastest: it keeps no execution."""
    program = await asyncio.to_thread(_install_n8n)
    port = free_port()
    environment = _environment(folder) | {
        "N8N_USER_FOLDER": str(folder),
        "N8N_LISTEN_ADDRESS": "127.0.0.1",
        "N8N_PORT": str(port),
        "N8N_RUNNERS_ENABLED": "false",
        "N8N_EXPRESSION_ENGINE": "legacy",  # the other needs a compiled module
        "N8N_DIAGNOSTICS_ENABLED": "false",
        "N8N_VERSION_NOTIFICATIONS_ENABLED": "false",
        "N8N_TEMPLATES_ENABLED": "false",
        "N8N_PERSONALIZATION_ENABLED": "false",
        "N8N_BLOCK_ENV_ACCESS_IN_NODE": "false",
        "NODE_FUNCTION_ALLOW_BUILTIN": "crypto",
        "EXECUTIONS_DATA_SAVE_ON_SUCCESS": "none",
        "EXECUTIONS_DATA_SAVE_ON_PROGRESS": "false",
        "N8N_PAYLOAD_SIZE_MAX": "50",
    }
    flow = folder / "n8n.json"
    flow.write_text(json.dumps(_build_n8n_flow(target)))
    for arguments in (
        ("import:workflow", f"--input={flow}"),
        ("update:workflow", "--id=bench", "--active=true"),
    ):
        await asyncio.to_thread(
            subprocess.run,
            [program, *arguments],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    async with _serve((program, "start"), environment, port, "/webhook/events") as server:
        yield server


def _install_n8n() -> str:
    """Return the program, installed with npm unless the folder has it: minutes, 2 GB of disk.

    The server of one of its dependencies, which the flow does not use, is replaced by npm's.
    """
    folder = Path(os.environ["TOCSIN_N8N"]).absolute()
    program = folder / "node_modules/n8n/bin/n8n"
    if not program.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        package = {"dependencies": {"n8n": N8N}, "overrides": {"xlsx": "0.18.5"}}
        (folder / "package.json").write_text(json.dumps(package))
        options = ("--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund")
        _run_npm(folder, "install", *options)
        _run_npm(folder, "rebuild", "sqlite3", "--build-from-source")
    return str(program)


def _build_n8n_flow(target: str) -> list[dict[str, Any]]:
    parts: list[tuple[str, float, dict[str, Any]]] = [
        ("webhook", 2, {"httpMethod": "POST", "path": "events", "responseMode": "onReceived"}),
        ("code", 2, {"mode": "runOnceForAllItems", "jsCode": _SIGN_IN_N8N}),
        (
            "httpRequest",
            4.2,
            {
                "method": "POST",
                "url": target,
                "sendHeaders": True,
                "specifyHeaders": "json",
                "jsonHeaders": "={{ $json.headers }}",
                "sendBody": True,
                "contentType": "raw",
                "rawContentType": "application/json",
                "body": "={{ $json.body }}",
                "options": {},
            },
        ),
    ]
    nodes = [
        {"id": kind, "name": kind, "type": f"n8n-nodes-base.{kind}", "typeVersion": version}
        | {"position": [0, 0], "parameters": parameters, "webhookId": kind}
        for kind, version, parameters in parts
    ]
    names = [kind for kind, _, _ in parts]
    connections = {
        source: {"main": [[{"node": following, "type": "main", "index": 0}]]}
        for source, following in pairwise(names)
    }
    flow = {"id": "bench", "name": "Events", "active": False, "settings": {}}
    return [flow | {"nodes": nodes, "connections": connections}]


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "BENCH_SECRET": SECRET}


@asynccontextmanager
async def _serve(
    command: Sequence[str], environment: Mapping[str, str], port: int, path: str
) -> AsyncIterator[FlowServer]:
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            server = FlowServer(session, path)
            await server.wait_until_ready()
            yield server
    finally:
        process.terminate()
        await process.wait()
