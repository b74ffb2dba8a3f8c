"""Proxy to a running tracker that injects faults."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from tocsin.testing import ReceiverSimulator

_HOP_BY_HOP = ("host", "connection", "content-length", "transfer-encoding", "date", "server")


class ForwardingProxy(ReceiverSimulator):
    """Forwards each request to the tracker, unless a fault comes in between."""

    home: str
    """URL of the tracker."""
    database: Path
    """SQLite database of the tracker, which is quicker than its API."""
    changes: str
    """Method of the requests that change an object."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.doubles = False
        """Whether each POST arrives twice; the second response is returned."""
        self.meanwhile = 0
        """Number of the next changes that come after a change by another user."""

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self.forward)]

    def is_signed(self, request: web.Request) -> bool:
        return True

    def change_as_another(self, path: str) -> None:
        """Change the object with a path as another user does."""
        raise NotImplementedError

    async def forward(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {
            header: v for header, v in request.headers.items() if header.lower() not in _HOP_BY_HOP
        }
        if self.meanwhile and request.method == self.changes:
            self.meanwhile -= 1
            self.change_as_another(request.path)
        for _ in range(2 if self.doubles and request.method == "POST" else 1):
            status, told, answer = await asyncio.to_thread(
                self.ask, request.method, request.path_qs, headers, body
            )
        kept = {header: v for header, v in told.items() if header.lower() not in _HOP_BY_HOP}
        return web.Response(status=status, headers=kept, body=answer)

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Return the status, header fields and body of the tracker's response."""
        with closing(HTTPConnection(urlsplit(self.home).netloc, timeout=20)) as connection:
            connection.request(method, path, None if method == "GET" else body, headers)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement in the tracker's database."""
        with closing(sqlite3.connect(self.database, timeout=20)) as database:
            rows = database.execute(statement, values).fetchall()
            database.commit()
            return rows
