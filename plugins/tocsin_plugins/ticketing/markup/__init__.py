"""Markdown as what trackers take instead: documents of Atlassian, wiki markup, plain text."""

from tocsin_plugins.ticketing.markup.characters import printable
from tocsin_plugins.ticketing.markup.document import as_it_is, document, text_of
from tocsin_plugins.ticketing.markup.fitting import fitted
from tocsin_plugins.ticketing.markup.plain import plain
from tocsin_plugins.ticketing.markup.wiki import wiki

__all__ = ["as_it_is", "document", "fitted", "plain", "printable", "text_of", "wiki"]
