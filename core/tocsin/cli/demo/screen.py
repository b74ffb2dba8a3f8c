"""Output of the demo: scrolling lines, colored on a terminal and plain elsewhere."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tocsin.cli.demo.service import Service

PROGRAM = Path(sys.executable).with_name("tocsin")
COMMAND = os.environ.get("DEMO_COMMAND", "tocsin demo")
"""Command that runs the demo again."""
_console = Console(highlight=False, soft_wrap=True)
_STYLES = {"Critical": "bold red", "High": "red", "Medium": "yellow"}


def line(text: str = "", style: str = "") -> None:
    """Print a line as it is."""
    _console.print(Text(text, style))


def note(text: str, style: str = "dim") -> None:
    """Print a line with the time."""
    line(f"{time.strftime('%H:%M:%S')}  {text}", style)


def welcome(service: Service, link: str, token: str, key: str) -> None:
    """Print addresses, credentials and commands to try."""
    url, folder = service.url, service.folder
    line()
    line(f"Console: {link}", "bold")
    line("The link works once, and expires after 15 minutes. Later, sign in with the admin token.")
    line()
    line(
        "Tocsin is running. A simulated sensor writes alerts, and Tocsin syncs incidents and sends "
        "webhooks.",
        "bold",
    )
    line()
    for name, value in (
        ("Console", f"{url}/"),
        ("API", f"{url}  (reference: {url}/docs)"),
        ("API key", key),
        ("Admin token", token),
        ("Configuration", f"{short(folder)}/plugins.toml"),
        ("Data and log", f"{short(folder)}, {short(service.log)}"),
    ):
        line(f"  {name:<14} {value}")
    line()
    line("Try these commands in another terminal:", "bold")
    line()
    line(f"  curl -H 'X-API-Key: {key}' \\")
    line(f"    '{url}/api/v1/incidents?severity=High&limit=5'")
    line(
        f"  export TOCSIN_DATA_DIR={short(folder)} TOCSIN_PLUGINS_FILE={short(folder)}/plugins.toml"
    )
    for command in (
        "investigations start 'what happened in incident 1?'",
        "search severity:high",
        "coverage",
    ):
        line(f"  {short(PROGRAM)} {command}")
    line()
    line("Received webhooks, with severity Medium or higher. To stop, press Ctrl+C.", "bold")
    line()


def delivery(event: dict[str, Any]) -> None:
    """Print one line for a delivery, without unprintable characters from outside."""
    data = event["data"]
    title = "".join(char if char.isprintable() else "?" for char in data["title"])
    number, severity = f"#{data['incident_number']}", data["severity"]
    style = _STYLES.get(severity, "")
    text = Text(f"{time.strftime('%H:%M:%S')}  ")
    text.append("verified", "green").append(f"  {number:<6} ").append(f"{severity:<10}", style)
    _console.print(text.append(title))


def short(path: Path) -> str:
    """Return the path relative to the current folder, if it is inside."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
