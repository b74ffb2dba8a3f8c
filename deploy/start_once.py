"""Test inside the container: starts the service, and checks its health, user, files and stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PATIENCE = 90  # seconds
USER = 65532
WRITABLE = ("/var/lib/tocsin", "/tmp", "/var/tmp", "/run/lock", "/proc", "/sys", "/dev")


def main() -> None:
    """Run the service once; the argument is the image's health check as JSON."""
    _, *check = json.loads(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    given = {"TOCSIN_PORT": port, "TOCSIN_BASE_URL": "https://tocsin.example.org"}
    environment = os.environ | given
    early = subprocess.run(check, env=environment, stderr=subprocess.DEVNULL, check=False)
    assert early.returncode != 0, "the health check succeeds without a service"
    started = time.monotonic()
    with subprocess.Popen(["/opt/tocsin/bin/tocsin", "serve"], env=environment) as service:
        while not is_ready(port):
            assert service.poll() is None, "the service ended"
            assert time.monotonic() - started < PATIENCE, "the service is not ready"
            time.sleep(0.2)
        subprocess.run(check, env=environment, check=True)
        service.send_signal(signal.SIGTERM)
        assert service.wait(PATIENCE) == 0, "the service did not stop gracefully"
    assert os.getuid() == os.getgid() == USER
    writable = [
        folder
        for folder, _, _ in os.walk("/")
        if not folder.startswith(WRITABLE) and os.access(folder, os.W_OK)
    ]
    assert not writable, f"the service could write to {writable}"
    names = sorted(path.name for path in Path("/var/lib/tocsin").iterdir())
    print(f"started, healthy and stopped as {USER}; files: {', '.join(names)}")


def is_ready(port: str) -> bool:
    """Return whether `/readyz` reports that the service is ready."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"http://127.0.0.1:{port}/readyz", timeout=10).close()
    except OSError:  # not listening yet, or status 503
        return False
    return True


main()
