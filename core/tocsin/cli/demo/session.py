"""Demo: a sensor, Tocsin and a receiver on this machine, until Ctrl+C.

DEMO_DIR, DEMO_PORT and DEMO_RECEIVER_PORT change the directory and the ports; port 0 selects any
free port.
"""

from __future__ import annotations

import base64
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from tocsin.cli.demo import screen
from tocsin.cli.demo.feed import Feed
from tocsin.cli.demo.receiver import EventInbox, Receiver
from tocsin.cli.demo.service import Service, ServiceError, free_port, write_secret

PLUGINS_FILE = Path(__file__).with_name("plugins.toml")
STATUS_EVERY = 10  # seconds
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Demo:
    """The parts of the demo in one folder; a single thread prints their output."""

    def __init__(self, folder: Path) -> None:
        self.lines: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.inbox = EventInbox(folder / "received.jsonl")
        self.before = len(self.inbox.ids)
        self.receiver = Receiver(
            free_port(int(os.environ.get("DEMO_RECEIVER_PORT", "8090"))),
            obtain_secret(folder / "webhook.secret"),
            self.inbox,
            on_event=lambda event: self.lines.put(partial(screen.delivery, event)),
            on_refusal=lambda why: self.lines.put(partial(screen.note, f"refused: {why}", "red")),
        )
        settings = PLUGINS_FILE.read_text(encoding="utf-8")
        settings = settings.replace(":8090/", f":{self.receiver.server_port}/")
        (folder / "plugins.toml").write_text(settings, encoding="utf-8")
        self.service = Service(folder, choose_port())
        self.feed = Feed(folder, lambda path: self.lines.put(partial(self._rotated, path)))

    def run(self) -> None:
        """Run until interrupted; raises ServiceError if Tocsin ends before that."""
        try:
            with serving(self.receiver), self.service:
                self._welcome()
                with self.feed:
                    self._show()
        except KeyboardInterrupt:
            self._farewell()

    def _welcome(self) -> None:
        service = self.service
        screen.note("starting the service")
        service.wait_until_ready()
        screen.note("service ready")
        link = service.command("admin", "sign-in-link", "--name", "demo", "--expires-in", "15m")
        token = service.command("admin", "token", "--name", "demo")
        key = service.api_key(token)
        screen.welcome(service, link, token, key)

    def _show(self) -> None:
        due = time.monotonic() + STATUS_EVERY
        while True:
            try:
                self.lines.get(timeout=0.2)()
            except Empty:
                self.service.check()
            if time.monotonic() >= due:
                screen.note(self._status())
                due = time.monotonic() + STATUS_EVERY

    def _rotated(self, path: Path) -> None:
        screen.note(f"sensor rotated eve.json to {path.name}")

    def _status(self) -> str:
        incidents, quarantined = self.service.counts()
        return (
            f"so far: {self.feed.alerts} alerts written, {incidents} incidents, "
            f"{len(self.inbox.ids)} delivered, {quarantined} quarantined"
        )

    def _farewell(self) -> None:
        while not self.lines.empty():
            self.lines.get()()
        delivered = len(self.inbox.ids) - self.before
        screen.line(f"\nStopped. Deliveries verified in this run: {delivered}.")
        folder = screen.short(self.service.folder)
        screen.line(f"To continue, run `{screen.COMMAND}` again. To start over, remove {folder}.")


@contextmanager
def serving(receiver: Receiver) -> Iterator[None]:
    """Run the receiver in a thread."""
    thread = threading.Thread(target=receiver.serve_forever, name="receiver", daemon=True)
    thread.start()
    try:
        yield
    finally:
        receiver.shutdown()
        receiver.server_close()


def obtain_secret(path: Path) -> str:
    """Return the webhook secret, which the first start generates."""
    if not path.exists():
        write_secret(path, "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode())
    return path.read_text(encoding="ascii").strip()


def choose_port() -> int:
    """Return the port of the API, and print a note if the wanted port is in use."""
    wanted = int(os.environ.get("DEMO_PORT", "8080"))
    port = free_port(wanted)
    if wanted not in {0, port}:
        screen.line(f"Port {wanted} is in use; the API listens on port {port}.", "yellow")
    return port


def run_demo() -> int:
    """Run until an interrupt, and return 0; return 1 if Tocsin ended by itself."""
    for number in STOPPING:
        signal.signal(number, interrupt)
    folder = Path(os.environ.get("DEMO_DIR", "data/demo")).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with suppress(KeyboardInterrupt):
            Demo(folder).run()
    except ServiceError as error:
        screen.line(str(error), "red")
        return 1
    return 0


def interrupt(*_: object) -> None:
    """Stop gracefully, and ignore further signals."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
