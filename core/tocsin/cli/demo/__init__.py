"""`tocsin demo`: a sensor, the service and a receiver on this machine."""

from __future__ import annotations

import typer


def demo() -> None:
    """Run the service with a simulated sensor and webhook receiver.

    Stores all data in data/demo in the current directory. To stop, press Ctrl+C. To change the
    directory or the ports, set the environment variables DEMO_DIR, DEMO_PORT and
    DEMO_RECEIVER_PORT. Port 0 selects any free port.
    """
    from tocsin.cli.demo.session import run_demo

    raise typer.Exit(run_demo())
