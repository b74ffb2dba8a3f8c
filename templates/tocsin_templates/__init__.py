"""Webhook, chat, mail and ticket templates: `<receiver>/<event>.json.j2`."""

from collections.abc import Sequence
from pathlib import Path

from tocsin import hookimpl


@hookimpl
def tocsin_template_paths() -> Sequence[Path]:
    """Return the folder of the shipped receivers' templates."""
    return [Path(__file__).parent]
