"""What a ticket of Zendesk may say.

A body is Markdown, of 64 KB: https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_comments/.
Placeholders: https://support.zendesk.com/hc/en-us/articles/4408886858138.
"""

from __future__ import annotations

from tocsin import Json
from tocsin_plugins.ticketing.markup import replace_unprintable, shorten_markdown

_MOST_BYTES = 60_000


def build_note(markdown: str) -> dict[str, Json]:
    """Return an internal comment, shortened where it is too long."""
    return {"body": shorten_markdown(markdown, _fits_in_body), "public": False}


def escape_placeholders(value: Json) -> Json:
    """Return what can be stored, without any text that Zendesk puts something else in place of."""
    match replace_unprintable(value):
        case str(text):
            return text.replace("{{", "{ {").replace("{%", "{ %")
        case list(items):
            return [escape_placeholders(it) for it in items]
        case dict(members):
            return {name: escape_placeholders(it) for name, it in members.items()}
    return value


def _fits_in_body(text: str) -> bool:
    return len(text.encode(errors="replace")) <= _MOST_BYTES
