"""Understanding a query: what it names, when, and what is wanted."""

from tocsin_plugins.investigator.understanding.joining import understand
from tocsin_plugins.investigator.understanding.scope import Scope
from tocsin_plugins.investigator.understanding.words import Intent, Wish, words_in

__all__ = ["Intent", "Scope", "Wish", "understand", "words_in"]
