"""Atlassian documents as Jira wiki markup, for Jira Data Center.

https://jira.atlassian.com/secure/WikiRendererHelpAction.jspa?section=all. Characters with a meaning
in markup become entities, which the renderer leaves alone; it does not support a backslash
everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

DocumentNode = Mapping[str, Any]

ENTITIES: Mapping[str, str] = MappingProxyType(
    {"&": "&amp;", "#": "&#35;"}
    | {character: f"&#{ord(character)};" for character in "\\{}[]()|*_-+^~!?@:<>"}
    | {f"{start}.": f"{start}&#46;" for start in ("bq", *(f"h{level}" for level in range(1, 7)))}
)
"""Replacements for characters that have a meaning in markup, in the order of replacement."""

_BREAK = " \\\\ "
_MARKERS = {"strong": "*", "em": "_", "strike": "-"}
_NOT_IN_LINKS = re.compile(r"[\[\]{}|\\!^\"<>\s]")
_FENCE = "{noformat}"
_SPLIT = "{ noformat"


def render_wiki(document: DocumentNode) -> str:
    """Return the wiki markup of a document."""
    return "\n\n".join(filter(None, map(_block, _content(document))))


def escape_wiki(text: str) -> str:
    """Return a text as literal wiki markup: no links, mentions or macros."""
    for mark, entity in ENTITIES.items():
        text = text.replace(mark, entity)
    return text


def _block(node: DocumentNode) -> str:
    """Return the markup of a block; unknown blocks count as paragraphs."""
    content = _content(node)
    match node["type"]:
        case "heading":
            text = f"h{node['attrs']['level']}. {_line(node)}"
        case "bulletList" | "orderedList":
            text = "\n".join(_items(node, ""))
        case "blockquote":
            inside = "\n\n".join(map(_block, content))
            text = f"{{quote}}\n{inside}\n{{quote}}"
        case "codeBlock":
            code = "".join(child["text"] for child in content).replace("{noformat", _SPLIT)
            text = f"{_FENCE}\n{code}\n{_FENCE}"
        case "table":
            text = "\n".join(map(_row, content))
        case "rule":
            text = "----"
        case _:
            text = "".join(_inline(content, "\n"))
    return text


def _items(node: DocumentNode, bullets: str) -> Iterator[str]:
    """Return the lines of a list that is nested in other lists with the given bullets."""
    bullets += "*" if node["type"] == "bulletList" else "#"
    for item in _content(node):
        lines: list[str] = []
        inside: list[DocumentNode] = []
        for block in _content(item):
            if block["type"] == "paragraph":
                lines.append(_line(block))
            else:
                inside.append(block)
        yield f"{bullets} {_BREAK.join(filter(None, lines))}"
        for block in inside:
            if block["type"] == "codeBlock":
                yield _block(block)
            else:
                yield from _items(block, bullets)


def _row(row: DocumentNode) -> str:
    cells = [(cell["type"], _line(cell["content"][0]) or " ") for cell in _content(row)]
    bars = ["||" if kind == "tableHeader" else "|" for kind, _ in cells]
    return "".join(f"{bar}{text}" for bar, (_, text) in zip(bars, cells, strict=True)) + bars[-1]


def _line(node: DocumentNode) -> str:
    """Return a block's text on one line."""
    return "".join(_inline(_content(node), _BREAK)).strip()


def _inline(nodes: Iterable[DocumentNode], line_break: str) -> Iterator[str]:
    for node in nodes:
        yield line_break if node["type"] == "hardBreak" else _marked(node)


def _marked(node: DocumentNode) -> str:
    kinds = {mark["type"]: mark for mark in node.get("marks", ())}
    text = node["text"]
    inner = text.strip()
    if not inner:
        return str(text)
    markup = escape_wiki(inner)
    if "code" in kinds:
        markup = f"{{{{{markup}}}}}"
    for kind, mark in _MARKERS.items():
        markup = f"{mark}{markup}{mark}" if kind in kinds else markup
    if "link" in kinds:
        markup = f"[{markup}|{_address(kinds['link']['attrs']['href'])}]"
    begin, _, end = text.partition(inner)
    return f"{begin}{markup}{end}"


def _address(href: str) -> str:
    return _NOT_IN_LINKS.sub(lambda found: quote(found[0], safe=""), href)


def _content(node: DocumentNode) -> list[DocumentNode]:
    return node.get("content") or []
