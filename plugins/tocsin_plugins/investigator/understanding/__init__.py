"""Understanding a query: what it names, when, and what is wanted."""

from tocsin_plugins.investigator.understanding.joining import interpret_messages
from tocsin_plugins.investigator.understanding.scope import InvestigationScope
from tocsin_plugins.investigator.understanding.words import FollowUp, QueryIntent, find_words

__all__ = ["FollowUp", "InvestigationScope", "QueryIntent", "find_words", "interpret_messages"]
