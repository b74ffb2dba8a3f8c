"""Comments in Sentinel: Markdown and HTML show the original text."""

from __future__ import annotations

from html.parser import HTMLParser
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tocsin_connectors.siem.sentinel.write_back import (
    MAX_COMMENT_LENGTH,
    derive_comment_name,
    escape_markup,
)

from .simulator import seen

SHOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
LINES = st.text(
    st.sampled_from("abc .,-+*_#>[]()!`~|<&;:=/\\1@$^{}'\"") | st.characters(categories=["L"]),
    min_size=1,
)


class Page(HTMLParser):
    """Keeps which tags there are, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.text = set[str](), ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    "text",
    [
        "# no heading",
        "- no list\n+ nor this\n* nor that",
        "a\n===\nb\n---",
        "[a link](https://example.com) and https://example.com, ![x](y)",
        "<script>alert(1)</script> & <b>bold</b> &amp; \\*",
        "`code` **bold** ~~gone~~ | a | b |",
        "> quoted\n\n    and indented",
        "    indented\n\tand by a tab",
        "1. no list\n2) nor this",
    ],
)
def test_text_is_escaped(text):
    page = Page()
    page.feed(SHOWN.render(escape_markup(text)))
    assert page.tags <= {"p", "br"}


@given(lines=st.lists(LINES))
def test_text_is_escaped_and_complete(lines):
    text = "\n".join(lines)
    page = Page()
    page.feed(SHOWN.render(escape_markup(text)))
    assert page.tags <= {"p", "br"}
    assert "".join(page.text.split()) == "".join(text.split())
    assert seen(escape_markup(text)) == text


def test_comment_is_truncated():
    assert len(escape_markup("a" * 40_000)) == MAX_COMMENT_LENGTH
    cut = escape_markup("<" * 40_000)
    assert MAX_COMMENT_LENGTH - 5 <= len(cut) <= MAX_COMMENT_LENGTH
    assert cut.endswith(";")
    assert len(escape_markup("\N{BELL}" * 20_000).encode("utf-16-le")) // 2 == MAX_COMMENT_LENGTH


def test_key_is_a_valid_azure_name():
    assert UUID(derive_comment_name("tocsin:ses_01:1:7")) == UUID(
        derive_comment_name("tocsin:ses_01:1:7")
    )
    assert derive_comment_name("tocsin:ses_01:1:7") != derive_comment_name("tocsin:ses_01:1:70")
