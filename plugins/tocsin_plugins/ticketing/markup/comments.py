"""Plain-text comments with defanged links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin import defang
from tocsin_plugins.ticketing.markup import parse_document, render_plain, replace_unprintable


def render_comment(markdown: str) -> str:
    """Return what Markdown says, without its marks; values have no address that can be followed."""
    return str(replace_unprintable(render_plain(_defang_code(parse_document(markdown)))))


def _defang_code(node: Mapping[str, Any]) -> dict[str, Any]:
    match node:
        case {"type": "text", "text": str(text), "marks": [{"type": "code"}]} if "://" in text:
            return {**node, "text": defang(text)}
        case {"content": [*content]}:
            return {**node, "content": [_defang_code(it) for it in content]}
    return dict(node)
