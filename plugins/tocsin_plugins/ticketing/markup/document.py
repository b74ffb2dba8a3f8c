"""Markdown as an Atlassian document (ADF): a tree of nodes, as JSON.

The allowed nesting and the ban on empty texts follow
https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/. Mentions, cards and
macros are never created.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

DocumentNode = dict[str, Any]
_IN_LISTS = ("paragraph", "bulletList", "orderedList", "codeBlock")
_LINKED = ("https://", "http://")
_MARKS = {"strong": "strong", "em": "em", "s": "strike"}


def parse_document(markdown: str) -> DocumentNode:
    """Return the document of a Markdown text."""
    tree = SyntaxTreeNode(_parser().parse(markdown))
    return {"type": "doc", "version": 1, "content": list(_blocks(tree.children))}


def literal_document(text: str) -> DocumentNode:
    """Return the document of a text without Markdown, with a paragraph for each line."""
    lines = filter(str.strip, text.splitlines())
    content = [_paragraph(list(_text(line, ()))) for line in lines]
    return {"type": "doc", "version": 1, "content": content}


def node_text(node: Any) -> str:
    """Return the text of a document or a node, with a line for each block."""
    match node:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "hardBreak"}:
            return "\n"
        case {"type": str(kind), "content": [*content]}:
            between = "" if kind in ("paragraph", "heading", "codeBlock") else "\n"
            return between.join(map(node_text, content))
    return ""


@lru_cache(1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _blocks(nodes: Iterable[SyntaxTreeNode]) -> Iterator[DocumentNode]:
    for node in nodes:
        yield from _block(node)


def _block(node: SyntaxTreeNode) -> Iterator[DocumentNode]:
    match node.type:
        case "heading":
            yield _heading(node)
        case "bullet_list":
            yield {"type": "bulletList", "content": [_item(child) for child in node.children]}
        case "ordered_list":
            yield _ordered(node)
        case "blockquote":
            inside = _simple(_blocks(node.children))
            yield {"type": "blockquote", "content": inside or [_paragraph([])]}
        case "fence" | "code_block":
            yield {"type": "codeBlock", "content": list(_text(node.content.rstrip("\n"), ()))}
        case "table":
            yield {"type": "table", "content": list(_rows(node))}
        case "hr":
            yield {"type": "rule"}
        case _:
            if content := _inline(node):
                yield _paragraph(content)


def _heading(node: SyntaxTreeNode) -> DocumentNode:
    attributes = {"level": int(node.tag[1:])}
    return {"type": "heading", "attrs": attributes, "content": _inline(node)}


def _ordered(node: SyntaxTreeNode) -> DocumentNode:
    attributes = {"order": int(node.attrs.get("start", 1))}
    return {
        "type": "orderedList",
        "attrs": attributes,
        "content": [_item(child) for child in node.children],
    }


def _item(node: SyntaxTreeNode) -> DocumentNode:
    """Return a list item, which starts with a paragraph, as older schemas require."""
    content = _simple(_blocks(node.children))
    first = [] if content and content[0]["type"] == "paragraph" else [_paragraph([])]
    return {"type": "listItem", "content": [*first, *content]}


def _simple(blocks: Iterable[DocumentNode]) -> list[DocumentNode]:
    """Return blocks that lists and quotes can contain; other blocks become text."""
    return [
        block if block["type"] in _IN_LISTS else _paragraph(list(_text(node_text(block), ())))
        for block in blocks
        if block["type"] != "rule"
    ]


def _rows(table: SyntaxTreeNode) -> Iterator[DocumentNode]:
    for row in (row for part in table.children for row in part.children):
        cells = [
            {
                "type": "tableHeader" if cell.type == "th" else "tableCell",
                "content": [_paragraph(_inline(cell))],
            }
            for cell in row.children
        ]
        yield {"type": "tableRow", "content": cells}


def _paragraph(content: Sequence[DocumentNode]) -> DocumentNode:
    return {"type": "paragraph", "content": list(content)}


def _inline(node: SyntaxTreeNode) -> list[DocumentNode]:
    """Return the inline nodes of a block; adjacent texts with equal marks are merged."""
    found = [
        phrase for child in node.children for phrase in _phrases(child.children or [child], ())
    ]
    return [text for marks, texts in groupby(found, _marks) for text in _join_texts(marks, texts)]


def _phrases(
    nodes: Iterable[SyntaxTreeNode], marks: tuple[DocumentNode, ...]
) -> Iterator[DocumentNode]:
    for node in nodes:
        match node.type:
            case "softbreak" | "hardbreak":
                yield {"type": "hardBreak"}
            case "code_inline":
                links = tuple(mark for mark in marks if mark["type"] == "link")
                yield from _text(node.content, (*links, {"type": "code"}))
            case "link" | "strong" | "em" | "s" | "image":
                yield from _phrases(node.children, (*marks, *_mark(node, marks)))
            case _:
                yield from _text(node.content, marks)


def _mark(node: SyntaxTreeNode, marks: Sequence[DocumentNode]) -> Iterator[DocumentNode]:
    address = str(node.attrs.get("href", ""))
    if node.type == "link" and address.startswith(_LINKED):
        yield {"type": "link", "attrs": {"href": address}}
    kind = _MARKS.get(node.type)
    if kind and all(mark["type"] != kind for mark in marks):
        yield {"type": kind}


def _text(text: str, marks: Sequence[DocumentNode]) -> Iterator[DocumentNode]:
    if text:
        yield {"type": "text", "text": text} | ({"marks": list(marks)} if marks else {})


def _marks(node: DocumentNode) -> Any:
    return node["type"], node.get("marks")


def _join_texts(key: tuple[str, Any], texts: Iterable[DocumentNode]) -> Iterator[DocumentNode]:
    kind, marks = key
    if kind == "text":
        yield from _text("".join(text["text"] for text in texts), marks or ())
    else:
        yield from texts
