"""Proxy to a running Roundup that injects faults."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, ClassVar
from urllib.parse import urlencode

import orjson

from tocsin.testing import RemoteObject
from tocsin.testing.conformance import ADDRESSES

from .forwarding import ForwardingProxy
from .roundup_server import ADMIN, PASSWORD, RunningRoundup

_BEGINS_AN_ISSUE = ".ticket@tocsin>"
_BETWEEN = "\f"
_ISSUES = """SELECT i.id, s._name FROM _issue i JOIN _status s ON s.id = i._status
    WHERE i.__retired__ = 0 ORDER BY i.id"""
_MESSAGES = """SELECT m.id, m._messageid FROM _msg m JOIN issue_messages l ON l.linkid = m.id
    WHERE l.nodeid = ? ORDER BY m.id"""


class RoundupProxy(ForwardingProxy):
    """Forwards each request to Roundup, unless a fault comes in between."""

    changes = "PATCH"
    tracker: ClassVar[RunningRoundup]
    """The Roundup that all tests of a process share."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.home = self.tracker.url
        self.database = self.tracker.home / "db/db"
        self._retire("")

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
            for number, status in self.query(_ISSUES)
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
        status, _, answer = self.ask(method, f"/rest/data{path}", headers, orjson.dumps(body))
        assert status < 300, answer
        return orjson.loads(answer)["data"]

    def change_as_another(self, path: str) -> None:
        path = path.removeprefix("/rest/data")
        issue = self.as_admin("GET", path)
        title = f"changed meanwhile, {self.next_number()}"
        self.as_admin("PATCH", path, {"title": title}, issue["@etag"])

    def _texts(self, issue: int, *, begins: bool) -> str:
        """Return the text that an issue begins with, or all others, each behind a mark."""
        numbers = [
            number
            for number, name in self.query(_MESSAGES, issue)
            if name.endswith(_BEGINS_AN_ISSUE) is begins
        ]
        folder = self.tracker.home / "db/files/msg"
        files = [folder / str(number // 1000) / f"msg{number}" for number in numbers]
        return "".join(_BETWEEN + file.read_text(encoding="utf-8") for file in files)

    def _retire(self, identifier: str) -> None:
        """Retire an issue, or with none given everything."""
        if identifier:
            self.query("UPDATE _issue SET __retired__ = id WHERE id = ?", identifier)
        else:
            for table in ("_issue", "_msg"):
                self.query(f"UPDATE {table} SET __retired__ = id")
