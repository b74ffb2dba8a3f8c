"""Webhook receiver that uses only the standard library.

`python -m tocsin.cli.demo.receiver SECRET_FILE [PORT]` prints the events that it receives. It
stores them in `received.jsonl` next to the secret, so that an event that arrives twice is accepted
once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TextIO

LARGEST_BODY = 1024 * 1024
TOLERANCE = 300  # seconds that the clocks may differ


def verify(secret: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Return the event; raises ValueError if the signature does not match the secret."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    signatures = headers["webhook-signature"].encode().split()
    if not any(hmac.compare_digest(expected, signature) for signature in signatures):
        raise ValueError("invalid signature")
    if abs(time.time() - int(headers["webhook-timestamp"])) > TOLERANCE:
        raise ValueError("timestamp out of tolerance: the message is too old or the clocks differ")
    event: dict[str, Any] = json.loads(body)
    return event


class EventInbox:
    """File of received events, each stored once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        path.touch(mode=0o600)
        with path.open(encoding="utf-8") as file:
            self.ids = {json.loads(line)["id"] for line in file}

    def take(self, webhook_id: str, event: dict[str, Any]) -> bool:
        """Store the event and return True; return False for a duplicate."""
        with self._lock:
            if webhook_id in self.ids:
                return False
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"id": webhook_id, "event": event}) + "\n")
            self.ids.add(webhook_id)
            return True


class Receiver(ThreadingHTTPServer):
    """HTTP server that verifies each POST, stores its event and responds."""

    def __init__(
        self,
        port: int,
        secret: str,
        inbox: EventInbox,
        on_event: Callable[[dict[str, Any]], None],
        on_refusal: Callable[[str], None],
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._secret = secret
        self._inbox = inbox
        self._on_event = on_event
        self._on_refusal = on_refusal

    def answer(self, headers: Mapping[str, str], body: bytes) -> HTTPStatus:
        """Return the response status; 2xx only after the event is stored."""
        try:
            event = verify(self._secret, headers, body)
        except (KeyError, ValueError) as error:
            self._on_refusal(
                f"missing header {error}" if isinstance(error, KeyError) else str(error)
            )
            return HTTPStatus.BAD_REQUEST
        if self._inbox.take(headers["webhook-id"], event):
            self._on_event(event)
        return HTTPStatus.NO_CONTENT


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    timeout = 10

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send_response(self.server.answer(headers, self.rfile.read(int(length))))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write no access log."""


_writing = threading.Lock()


def say(line: str, file: TextIO) -> None:
    """Write a line and flush it; several request threads call this."""
    with _writing:
        file.write(f"{line}\n")
        file.flush()


def main() -> None:
    """Receive until interrupted, printing a line of JSON for each event."""
    path = Path(sys.argv[1])
    secret = path.read_text(encoding="utf-8").strip()
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8090  # noqa: PLR2004
    inbox = EventInbox(path.with_name("received.jsonl"))

    def show(event: dict[str, Any]) -> None:
        say(json.dumps(event), sys.stdout)

    def complain(reason: str) -> None:
        say(f"refused: {reason}", sys.stderr)

    with Receiver(port, secret, inbox, show, complain) as receiver:
        print(f"listening on http://127.0.0.1:{port}/", file=sys.stderr)
        receiver.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
