"""Answers to an investigator's questions from history, providers and enrichers."""

from tocsin.investigations.answers.history import HistoryAnswers
from tocsin.investigations.answers.providers import ProviderEventSearch
from tocsin.investigations.answers.reply import QuestionHandler, SourceReply, encode_reply
from tocsin.investigations.answers.router import QuestionRouter

__all__ = [
    "HistoryAnswers",
    "ProviderEventSearch",
    "QuestionHandler",
    "QuestionRouter",
    "SourceReply",
    "encode_reply",
]
