"""Plain text from Markdown and Atlassian documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin import defang
from tocsin_plugins.ticketing.markup.document import node_text, parse_document
from tocsin_plugins.ticketing.markup.limits import replace_unprintable

DocumentNode = Mapping[str, Any]
_INDENT = "  "


def render_comment(markdown: str) -> str:
    """Return Markdown as plain text, with defanged addresses in code."""
    return str(replace_unprintable(render_plain(_defang_code(parse_document(markdown)))))


def render_plain(document: DocumentNode) -> str:
    """Return the plain text of a document; links follow their labels."""
    return "\n\n".join(filter(None, map(_block, _content(document))))


def _block(node: DocumentNode) -> str:
    """Return the text of a block; unknown blocks count as paragraphs."""
    match node["type"]:
        case "heading":
            line = _inline(node)
            text = f"{line}\n{'-' * len(line)}"
        case "bulletList" | "orderedList":
            text = "\n".join(_items(node))
        case "blockquote":
            lines = "\n\n".join(map(_block, _content(node))).splitlines()
            text = "\n".join(f"> {line}".rstrip() for line in lines)
        case "table":
            text = "\n".join(map(_row, _content(node)))
        case "rule":
            text = "---"
        case _:
            text = _inline(node)
    return text


def _items(node: DocumentNode) -> Iterator[str]:
    numbered = node["type"] == "orderedList"
    first = node["attrs"]["order"] if numbered else 0
    for number, item in enumerate(_content(node), first):
        bullet = f"{number}. " if numbered else "- "
        lines = "\n".join(filter(None, map(_block, _content(item)))).splitlines()
        yield f"{bullet}{lines[0] if lines else ''}".rstrip()
        yield from (f"{_INDENT}{line}" for line in lines[1:])


def _row(row: DocumentNode) -> str:
    return " | ".join(_inline(cell["content"][0]) for cell in _content(row))


def _inline(node: DocumentNode) -> str:
    return "".join(map(_phrase, _content(node)))


def _phrase(node: DocumentNode) -> str:
    text = node_text(node)
    links = [mark["attrs"]["href"] for mark in node.get("marks", ()) if mark["type"] == "link"]
    return f"{text}: {links[0]}" if links and links[0] != text else text


def _content(node: DocumentNode) -> list[DocumentNode]:
    return node.get("content") or []


def _defang_code(node: DocumentNode) -> dict[str, Any]:
    match node:
        case {"type": "text", "text": str(text), "marks": [{"type": "code"}]} if "://" in text:
            return {**node, "text": defang(text)}
        case {"content": [*content]}:
            return {**node, "content": [_defang_code(child) for child in content]}
    return dict(node)
