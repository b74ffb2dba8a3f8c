"""Comments as RT takes them."""

from __future__ import annotations

from tocsin import Json
from tocsin_plugins.ticketing.plain_text import render_comment

_TITLE = 150  # characters of the 255 that a transaction remembers of a subject


def build_comment(markdown: str) -> dict[str, Json]:
    """Return a comment; its subject is the first line of the text, with the last.

    The last one names the event, and a history shows subjects but no texts.
    """
    content = render_comment(markdown)
    lines = [it for it in content.splitlines() if it] or ["Tocsin"]
    named = f" ({lines[-1]})" if len(lines) > 1 else ""
    subject = f"{lines[0][:_TITLE]}{named}"
    return {"Subject": subject, "Content": content, "ContentType": "text/plain"}
