"""Proxy to a running Request Tracker that injects faults."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson

from tocsin.testing import RemoteObject
from tocsin.testing.conformance import ADDRESSES

from .forwarding import ForwardingProxy
from .request_tracker_server import QUEUE, RunningRequestTracker

_TICKETS = "SELECT id, Status FROM Tickets WHERE Status != 'deleted' ORDER BY id"
_CONTENTS = """SELECT t.Type, a.Content FROM Transactions t
    JOIN Attachments a ON a.TransactionId = t.id
    WHERE t.ObjectType = 'RT::Ticket' AND t.ObjectId = ? AND t.Type IN ('Create', 'Comment')
    ORDER BY t.id"""


class RequestTrackerProxy(ForwardingProxy):
    """Forwards each request to Request Tracker, unless a fault comes in between."""

    changes = "PUT"
    tracker: ClassVar[RunningRequestTracker]
    """The instance that all tests of a process share."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.home = self.tracker.url
        self.database = self.tracker.folder / "rt.sqlite"
        self.query("UPDATE Tickets SET Status = 'deleted'")

    def objects(self) -> list[RemoteObject]:
        return [self._object(number, status) for number, status in self.query(_TICKETS)]

    def remove(self, identifier: str) -> None:
        self.query("UPDATE Tickets SET Status = 'deleted' WHERE id = ?", identifier)

    def change_as_another(self, path: str) -> None:
        number = path.rpartition("/")[2]
        self.query("UPDATE Tickets SET LastUpdated = '2030-01-01 00:00:00' WHERE id = ?", number)

    def block(self, identifier: str) -> None:
        """Make a ticket depend on a new one."""
        other = {"Queue": QUEUE, "Subject": "Another", "ContentType": "text/plain"}
        created = self._change("POST", "/REST/2.0/ticket", other)
        self._change("PUT", f"/REST/2.0/ticket/{identifier}", {"DependsOn": created["id"]})

    def _change(self, method: str, path: str, content: dict[str, Any]) -> Any:
        headers = {
            "Authorization": f"token {self.tracker.token()}",
            "Content-Type": "application/json",
        }
        status, _, body = self.ask(method, path, headers, orjson.dumps(content))
        assert status < 300, body
        return orjson.loads(body)

    def _object(self, number: int, status: str) -> RemoteObject:
        contents = self.query(_CONTENTS, number)
        first = "".join(content for kind, content in contents if kind == "Create" and content)
        return RemoteObject(
            id=str(number),
            observables=[address for address in ADDRESSES if address in first],
            notes=[content for kind, content in contents if kind == "Comment"],
            is_open=status == "new",
        )
