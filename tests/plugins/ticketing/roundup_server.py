"""Loopback Roundup server: `python roundup_server.py FOLDER` prints its port, and serves.

Made as its documentation says, from the template `classic` and with the role of our own page, with
the WSGI handler, since `roundup-server` does not run as root.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

ADMIN, BOT, STRANGER, GUESSED = "admin", "tocsin", "stranger", "guessed"
PASSWORD = "a password of Roundup"
KEYWORD = "soc"
PAGE = Path(__file__).parents[3] / "docs/soar/trackers/roundup.md"


@dataclass(frozen=True, slots=True)
class RunningRoundup:
    """A Roundup that runs: where it is, and where its files are."""

    url: str
    home: Path


@contextmanager
def run_roundup(folder: Path) -> Iterator[RunningRoundup]:
    """Run a new Roundup, whose tracker is kept in a folder."""
    home = folder / "tracker"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, str(home)], stdout=subprocess.PIPE, stderr=log, text=True
        )
        with process:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, (folder / "log").read_text()
            yield RunningRoundup(f"http://127.0.0.1:{port}", home)
            process.terminate()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _administer(*arguments: str) -> None:
    from roundup.admin import AdminTool

    sys.argv = ["roundup-admin", *arguments]
    assert not AdminTool().main(), arguments


def _install(home: str, port: int) -> None:
    told = {
        "web": f"tracker_web=http://127.0.0.1:{port}/",
        "mail": f"mail_domain=example.org,mail_host=127.0.0.1,mail_debug={home}/mail",
        "quick": "password_pbkdf2_default_rounds=1000",
        "name": "admin_email=admin@example.org,tracker_name=soc",
    }
    _administer("-i", home, "install", "classic", "sqlite", ",".join(told.values()))
    [role] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    with Path(home, "schema.py").open("a", encoding="utf-8") as schema:
        schema.write(f"\n{role}")
    _administer("-i", home, "initialise", PASSWORD)
    for name, roles in {BOT: "Tocsin", STRANGER: "Anonymous", GUESSED: "User"}.items():
        facts = (f"username={name}", f"password={PASSWORD}", f"address={name}@example.org")
        _administer("-i", home, "create", "user", *facts, f"roles={roles}")
    _administer("-i", home, "create", "keyword", f"name={KEYWORD}")


def _serve(home: str) -> None:
    with make_server("127.0.0.1", 0, None, _Server, _Quiet) as server:  # type: ignore[arg-type]
        port, out = server.server_port, sys.stdout
        sys.stdout = sys.stderr
        _install(home, port)
        from roundup.cgi.wsgi_handler import RequestDispatcher

        server.set_app(RequestDispatcher(home))
        print(port, file=out, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    _serve(sys.argv[1])
