"""A real Node-RED out of its npm package, which runs the flow of the examples, and its operator."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, Self

import aiohttp

from ports import free_port

from .service import SECRET, Sensor, Service

_ROOT = Path(__file__).parents[2]
FLOW = _ROOT / "examples/node-red/flow.json"
_PACKAGE = Path(os.environ.get("TOCSIN_NODE_RED", _ROOT / ".components" / "node-red"))
_PROGRAM = _PACKAGE / "node_modules/node-red/red.js"

WITHOUT_SECRET = "/without-secret"
"""Where a second copy of the flow listens, which was not told the secret."""


def why_not() -> str | None:
    """Return why there is no real Node-RED to test with, None where there is one."""
    if shutil.which("node") is None:
        return "there is no Node.js here"
    if not _PROGRAM.is_file():
        return f"no Node-RED is in {_PACKAGE}; run .ci/components, or set TOCSIN_NODE_RED"
    return None


class NodeRed:
    """A Node-RED in a process and a folder of its own, without an editor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "node-red.log"
        self._process: asyncio.subprocess.Process | None = None
        self._port = free_port()
        self.address = f"http://127.0.0.1:{self._port}"
        self.environment: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        """Start it with what `environment` holds by now, and return when the flow answers."""
        (self._folder / "settings.js").write_text(
            f"module.exports = {json.dumps(self._settings())}"
        )
        (self._folder / "flows.json").write_text(json.dumps([*_flow(), *_flow_without_secret()]))
        command = ("node", str(_PROGRAM), "--settings", str(self._folder / "settings.js"))
        own = {"PATH": os.environ["PATH"], "HOME": str(self._folder)}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, env=own | self.environment, cwd=self._folder, stdout=log, stderr=log
            )
        async with asyncio.timeout(60), aiohttp.ClientSession(self.address) as session:
            while not await self._answers(session):
                assert self._process.returncode is None, self._log.read_text()
                await asyncio.sleep(0.02)
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    def _settings(self) -> dict[str, Any]:
        return {
            "uiHost": "127.0.0.1",
            "uiPort": self._port,
            "userDir": str(self._folder),
            "flowFile": "flows.json",
            "httpAdminRoot": False,
            "telemetry": {"enabled": False, "updateNotification": False},
            "externalModules": {
                "palette": {"allowInstall": False},
                "modules": {"allowInstall": False},
            },
        }

    async def _answers(self, session: aiohttp.ClientSession) -> bool:
        """Tell whether both copies of the flow are there."""
        try:
            async with session.post("/tocsin") as one, session.post(WITHOUT_SECRET) as other:
                return (one.status, other.status) == (401, 500)
        except aiohttp.ClientConnectionError:
            return False


def _flow() -> list[dict[str, Any]]:
    return json.loads(FLOW.read_text(encoding="utf-8"))


def _flow_without_secret() -> list[dict[str, Any]]:
    text = json.dumps(_flow()).replace('"tocsin', '"without-secret')
    tab, *nodes = json.loads(text.replace('"/tocsin"', json.dumps(WITHOUT_SECRET)))
    return [tab | {"env": [{"name": "TOCSIN_WEBHOOK_SECRET", "type": "str", "value": ""}]}, *nodes]


def signed(
    body: bytes, *keys: bytes, webhook_id: str = "evt_1", moment: float | None = None
) -> dict[str, str]:
    """Return the headers of a message that was signed with each of the keys."""
    timestamp = str(int(time.time() if moment is None else moment))
    content = f"{webhook_id}.{timestamp}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, content, "sha256")).decode() for key in keys)
    return {
        "content-type": "application/json",
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


class Operator:
    """Sees to a Tocsin and a Node-RED that know of each other."""

    def __init__(self, service: Service, node_red: NodeRed, api: aiohttp.ClientSession) -> None:
        self._service = service
        self._node_red = node_red
        self._api = api
        self._sensor = Sensor(service.folder / "eve.json")
        self._reader = ""
        self.client_id = ""

    async def introduce(self, scopes: list[str]) -> None:
        """Make the flow's client, and tell Node-RED what it has to know."""
        client = await self.admin("POST", "api-clients", {"name": "soar", "scopes": scopes})
        reading = {"name": "operator", "scopes": ["investigations:read"]}
        self._reader = (await self.admin("POST", "api-keys", reading))["api_key"]
        self.client_id = client["client_id"]
        self._node_red.environment = {
            "TOCSIN_WEBHOOK_SECRET": SECRET,
            "TOCSIN_URL": self._service.url,
            "TOCSIN_CLIENT_ID": client["client_id"],
            "TOCSIN_CLIENT_SECRET": client["client_secret"],
        }

    async def restart_node_red(self) -> None:
        await self._node_red.__aexit__()
        await self._node_red.__aenter__()

    async def admin(self, method: str, path: str, content: Any = None) -> Any:
        """Return what Tocsin answers an admin."""
        async with self._api.request(method, f"/api/admin/{path}", json=content) as answer:
            assert answer.ok, await answer.text()
            return await answer.json()

    @property
    def next_number(self) -> int:
        """The number that the next incident will have."""
        return self._sensor.written + 1

    def raise_alert(self) -> int:
        """Have the sensor see something, and return the number of the incident to come."""
        self._sensor.write(1)
        return self._sensor.written

    async def known_incident(self) -> int:
        """Return the number of a new incident that the flow has dealt with."""
        number = self.raise_alert()
        await self.delivery(number, to="soar", state="delivered")
        return number

    async def delivery(self, number: int, to: str, state: str, attempts: int = 1) -> Any:
        """Return the delivery about an incident, with its attempts, when it rests so."""
        path = f"deliveries?destination={to}&subject=incident:{number}&state={state}"
        async with asyncio.timeout(30):
            while True:
                for found in (await self.admin("GET", path))["deliveries"]:
                    if found["attempts"] >= attempts:
                        return await self.admin("GET", f"deliveries/{found['id']}")
                await asyncio.sleep(0.02)

    async def investigation(self, session_id: str) -> Any:
        return await self._service.get(f"/api/v1/investigations/{session_id}", self._reader)

    async def queries(self, number: int) -> int:
        """Return how many investigations of an incident were started."""
        page = await self._service.get("/api/v1/investigations?limit=200", self._reader)
        query = f"investigate incident {number}"
        return sum(session["query"] == query for session in page["investigations"])

    async def post(
        self, body: bytes, headers: dict[str, str], path: str = "/tocsin"
    ) -> tuple[int, Any]:
        """Send the flow a message past Tocsin, and return the status and what was answered."""
        async with (
            aiohttp.ClientSession(self._node_red.address) as session,
            session.post(path, data=body, headers=headers) as answer,
        ):
            return answer.status, json.loads(await answer.text() or "null")
