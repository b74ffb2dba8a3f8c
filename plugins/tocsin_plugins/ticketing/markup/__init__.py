"""Conversion of Markdown for trackers: Atlassian documents, wiki markup and plain text."""

from tocsin_plugins.ticketing.markup.document import literal_document, node_text, parse_document
from tocsin_plugins.ticketing.markup.limits import replace_unprintable, shorten_markdown
from tocsin_plugins.ticketing.markup.plain import render_comment, render_plain
from tocsin_plugins.ticketing.markup.wiki import render_wiki

__all__ = [
    "literal_document",
    "node_text",
    "parse_document",
    "render_comment",
    "render_plain",
    "render_wiki",
    "replace_unprintable",
    "shorten_markdown",
]
