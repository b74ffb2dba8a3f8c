"""Pictures of chat messages; run `python tests/receiver_previews.py` to draw them with Chromium.

They are drawn from the bodies that are sent, about as each product does it, and are not made by it.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markdown_it import MarkdownIt
from markupsafe import Markup

from receiver_pages import FOLDER, PICTURES
from receiver_samples import ALERT
from tocsin import Event
from tocsin.delivery.rendering import Renderer

RECEIVERS = ("discord", "google-chat", "mattermost", "slack", "teams")
LARGEST = 60 * 1024
_WIDTH = 620
_SLACK = re.compile(r"`(?P<code>[^`\n]+)`|\*(?P<bold>[^*\n]+)\*|<(?P<url>[^|>]+)\|(?P<name>[^>]+)>")
_MARKDOWN = MarkdownIt("js-default", {"html": False, "linkify": True, "breaks": True})


def _mrkdwn(text: str) -> Markup:
    """Return Slack's markup, which has its three entities, as HTML."""
    return Markup(_SLACK.sub(_slack_span, text).replace("\n", "<br>"))


def _slack_span(found: re.Match[str]) -> str:
    if found["code"]:
        return f"<code>{found['code']}</code>"
    if found["bold"]:
        return f"<b>{found['bold']}</b>"
    return f'<a href="{html.escape(found["url"])}">{found["name"]}</a>'


def _markdown(text: str) -> Markup:
    return Markup(_MARKDOWN.render(text))


def preview(receiver: str, *events: Event) -> str:
    """Return a page that shows what a receiver is sent of these events."""
    folder = Path(__file__).parent / "previews"
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True)
    environment.filters |= {"mrkdwn": _mrkdwn, "markdown": _markdown}
    renderer = Renderer([FOLDER])
    bodies = [json.loads(renderer.render(receiver, event)) for event in events]
    return environment.get_template(f"{receiver}.html.j2").render(bodies=bodies, width=_WIDTH)


def draw(receiver: str, target: Path, chromium: str, *events: Event) -> None:
    """Write a picture of these events at a receiver, as high as it has to be."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(preview(receiver, *events), encoding="utf-8")
        shown = _run(chromium, "--dump-dom", page, height=800)
        [height] = re.findall(r'data-height="(\d+)"', shown)
        _run(chromium, f"--screenshot={target}", page, height=int(height))


def _run(chromium: str, action: str, page: Path, height: int) -> str:
    size = f"--window-size={_WIDTH},{height}"
    command = [chromium, "--headless", "--no-sandbox", "--disable-lcd-text", size, action, page]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def main() -> None:
    """Draw every picture."""
    chromium = shutil.which("chromium") or sys.exit("there is no chromium to draw with")
    PICTURES.mkdir(exist_ok=True)
    for receiver in RECEIVERS:
        target = PICTURES / f"{receiver}.png"
        draw(receiver, target, chromium, ALERT)
        print(f"{target}: {target.stat().st_size:,} bytes")  # noqa: T201 - its output


if __name__ == "__main__":
    main()
