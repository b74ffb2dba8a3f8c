"""Interpretation of a query: its entities, times, intents and follow-ups."""

from tocsin_plugins.investigator.interpretation.conversation import interpret_messages
from tocsin_plugins.investigator.interpretation.scope import InvestigationScope
from tocsin_plugins.investigator.interpretation.vocabulary import FollowUp, QueryIntent, find_words

__all__ = [
    "FollowUp",
    "InvestigationScope",
    "QueryIntent",
    "find_words",
    "interpret_messages",
]
