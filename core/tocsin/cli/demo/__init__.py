"""`tocsin demo`: a sensor, the service and a receiver on this machine."""

from __future__ import annotations

import typer


def demo() -> None:
    """Run the service with a simulated sensor and a webhook receiver until Ctrl+C.

    All data is in data/demo in the current directory. DEMO_DIR, DEMO_PORT and DEMO_RECEIVER_PORT
    change the directory and the ports; port 0 selects any free port.
    """
    from tocsin.cli.demo.session import run_demo

    raise typer.Exit(run_demo())
