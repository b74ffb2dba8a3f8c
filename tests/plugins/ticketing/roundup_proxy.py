"""Proxy to a running Roundup that injects faults."""

from __future__ import annotations

import asyncio
import sqlite3
from base64 import b64encode
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

import orjson
from aiohttp import web

from tocsin.testing import ReceiverSimulator, RemoteObject
from tocsin.testing.conformance import ADDRESSES

from .roundup_server import ADMIN, PASSWORD, RunningRoundup

_HOP_BY_HOP = ("host", "connection", "content-length", "transfer-encoding", "date", "server")
_BEGINS_AN_ISSUE = ".ticket@tocsin>"
_BETWEEN = "\f"
_ISSUES = """SELECT i.id, s._name FROM _issue i JOIN _status s ON s.id = i._status
    WHERE i.__retired__ = 0 ORDER BY i.id"""
_MESSAGES = """SELECT m.id, m._messageid FROM _msg m JOIN issue_messages l ON l.linkid = m.id
    WHERE l.nodeid = ? ORDER BY m.id"""


class RoundupProxy(ReceiverSimulator):
    """Every request is Roundup's to answer, unless a fault comes in between."""

    tracker: ClassVar[RunningRoundup]
    """The Roundup that all tests of a process share."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.doubles = False
        """Whether each request that makes something arrives twice; its second answer is told."""
        self.meanwhile = 0
        """How many changes by others come right before the next ones that are asked for."""
        self._retire("")

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self.forward)]

    def is_signed(self, request: web.Request) -> bool:
        return True

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=str(number),
                observables=[
                    address for address in ADDRESSES if address in self._texts(number, begins=True)
                ],
                notes=self._texts(number, begins=False).split(_BETWEEN)[1:],
                is_open=status != "resolved",
            )
            for number, status in self._query(_ISSUES)
        ]

    def remove(self, identifier: str) -> None:
        self._retire(identifier)

    # what a test uses

    def listed(self, kind: str, **query: str) -> list[dict[str, Any]]:
        """Return the objects of a class, as an administrator sees them."""
        return self.as_admin("GET", f"/{kind}?{urlencode(query)}")["collection"]

    def as_admin(self, method: str, path: str, body: Any = None, tag: str = "") -> Any:
        """Return what Roundup answers to an administrator."""
        pair = b64encode(f"{ADMIN}:{PASSWORD}".encode()).decode()
        headers = {
            "Authorization": f"Basic {pair}",
            "Origin": self.tracker.url,
            "X-Requested-With": "rest",
            "Content-Type": "application/json",
            "If-Match": tag,
        }
        status, _, answer = self._ask(method, f"/rest/data{path}", headers, orjson.dumps(body))
        assert status < 300, answer
        return orjson.loads(answer)["data"]

    async def forward(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {
            header: v for header, v in request.headers.items() if header.lower() not in _HOP_BY_HOP
        }
        if self.meanwhile and request.method == "PATCH":
            self.meanwhile -= 1
            self._change_as_another(request.path.removeprefix("/rest/data"))
        for _ in range(2 if self.doubles and request.method == "POST" else 1):
            status, told, answer = await asyncio.to_thread(
                self._ask, request.method, request.path_qs, headers, body
            )
        kept = {header: v for header, v in told.items() if header.lower() not in _HOP_BY_HOP}
        return web.Response(status=status, headers=kept, body=answer)

    def _ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        with closing(HTTPConnection(urlsplit(self.tracker.url).netloc, timeout=20)) as connection:
            connection.request(method, path, None if method == "GET" else body, headers)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()

    def _change_as_another(self, path: str) -> None:
        issue = self.as_admin("GET", path)
        title = f"changed meanwhile, {self.next_number()}"
        self.as_admin("PATCH", path, {"title": title}, issue["@etag"])

    def _texts(self, issue: int, *, begins: bool) -> str:
        """Return the text that an issue begins with, or all others, each behind a mark."""
        numbers = [
            number
            for number, name in self._query(_MESSAGES, issue)
            if name.endswith(_BEGINS_AN_ISSUE) is begins
        ]
        folder = self.tracker.home / "db/files/msg"
        files = [folder / str(number // 1000) / f"msg{number}" for number in numbers]
        return "".join(_BETWEEN + file.read_text(encoding="utf-8") for file in files)

    def _retire(self, identifier: str) -> None:
        """Retire an issue, or with none given everything."""
        if identifier:
            self._query("UPDATE _issue SET __retired__ = id WHERE id = ?", identifier)
        else:
            for table in ("_issue", "_msg"):
                self._query(f"UPDATE {table} SET __retired__ = id")

    def _query(self, statement: str, *values: Any) -> list[Any]:
        """Return what its database answers, which takes a twentieth of the time of its API."""
        with closing(sqlite3.connect(self.tracker.home / "db/db", timeout=20)) as database:
            rows = database.execute(statement, values).fetchall()
            database.commit()
            return rows
