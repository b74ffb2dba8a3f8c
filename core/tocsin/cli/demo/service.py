"""Tocsin service process and its API key."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

HOST = "127.0.0.1"
_TOCSIN = (sys.executable, "-m", "tocsin")
_PATIENCE = 40  # seconds; `tocsin serve` gives deliveries under way 30 to finish

_LAST_LINES = 15
SCOPES = [
    "graph:read",
    "incidents:read",
    "investigations:read",
    "investigations:write",
    "search:read",
]


class ServiceError(Exception):
    """Tocsin failed; the text is its error message."""


def free_port(wanted: int) -> int:
    """Return the first free port from `wanted` on; any free port for 0."""
    for port in range(wanted, wanted + 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise SystemExit(f"no free port from {wanted} to {wanted + 99}")


class Service:
    """Context manager that runs `tocsin serve` with the plugins.toml in `folder`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://{HOST}:{port}"
        self.log = folder / "serve.log"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
        self._environment = {
            **kept,
            "TOCSIN_DATA_DIR": str(folder),
            "TOCSIN_PLUGINS_FILE": str(folder / "plugins.toml"),
            "TOCSIN_HOST": HOST,
            "TOCSIN_PORT": str(port),
        }

    def __enter__(self) -> Self:
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [*_TOCSIN, "serve"],
                cwd=self.folder,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl+C is for the demo, which stops its parts in order
            )
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def check(self) -> None:
        """Raise ServiceError if the service has ended."""
        if (status := self._process.poll()) is None:
            return
        said = self.log.read_bytes()[self._log_start :].decode("utf-8", "replace").splitlines()
        last = "\n".join(said[-_LAST_LINES:])
        raise ServiceError(f"`tocsin serve` exited with status {status}:\n{last}")

    def wait_until_ready(self) -> None:
        """Wait until the API reports that the service is ready."""
        while True:
            self.check()
            try:
                self.request("/readyz")
            except OSError:  # not listening yet, or status 503
                time.sleep(0.1)
            else:
                return

    def command(self, *arguments: str) -> str:
        """Return the output of a `tocsin` command; raises ServiceError if it fails."""
        done = subprocess.run(
            [*_TOCSIN, *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        if done.returncode:
            raise ServiceError(f"`tocsin {' '.join(arguments)}` failed:\n{done.stderr.strip()}")
        return done.stdout.strip()

    def api_key(self, admin_token: str) -> str:
        """Return the key of an earlier run if it still works, or a new one."""
        path = self.folder / "api.key"
        if path.exists() and self._works(key := path.read_text(encoding="ascii").strip()):
            return key
        wanted = {"name": "demo", "scopes": SCOPES, "expires_in_days": 30}
        headers = {"Authorization": f"Bearer {admin_token}", "Content-Type": "application/json"}
        try:
            created = self.request("/api/admin/api-keys", headers, json.dumps(wanted).encode())
        except urllib.error.HTTPError as error:
            raise ServiceError(
                f"creating an API key failed: {error}: {error.read().decode()}"
            ) from None
        write_secret(path, created["api_key"])
        return str(created["api_key"])

    def _works(self, key: str) -> bool:
        """Return whether the API accepts the key; other failures do not count against it."""
        try:
            for path in ("/api/v1/incidents?limit=1", "/api/v1/investigations?limit=1"):
                self.request(path, {"X-API-Key": key})
        except urllib.error.HTTPError as error:
            return error.code not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
        return True

    def request(
        self, path: str, headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> Any:
        """Return the JSON response of the API; raises HTTPError for a status other than 2xx."""
        request = urllib.request.Request(self.url + path, body, headers or {})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as response:
            return json.load(response)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of synced incidents and quarantined records."""
        intervals = json.loads(self.command("coverage", "--json", "--limit", "100000"))
        return (
            sum(interval["new"] for interval in intervals),
            sum(interval["rejected"] for interval in intervals),
        )


def write_secret(path: Path, secret: str) -> None:
    """Write a file that only its owner can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret + "\n")
