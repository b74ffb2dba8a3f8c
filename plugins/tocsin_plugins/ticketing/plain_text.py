"""Comments for trackers that show text as it is, and make links of the addresses in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin import defang
from tocsin_plugins.ticketing.markup import document, plain, printable


def plain_text(markdown: str) -> str:
    """Return what Markdown says, without its marks; values have no address that can be followed."""
    return str(printable(plain(_unlinked(document(markdown)))))


def _unlinked(node: Mapping[str, Any]) -> dict[str, Any]:
    match node:
        case {"type": "text", "text": str(text), "marks": [{"type": "code"}]} if "://" in text:
            return {**node, "text": defang(text)}
        case {"content": [*content]}:
            return {**node, "content": [_unlinked(it) for it in content]}
    return dict(node)
