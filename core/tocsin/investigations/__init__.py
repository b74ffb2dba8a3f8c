"""Investigations: sessions, the ledger of what was asked in them, and running them to their end."""

from tocsin.investigations.answers.history import HistoryAnswers
from tocsin.investigations.answers.providers import ProviderEventSearch
from tocsin.investigations.answers.reply import SourceReply
from tocsin.investigations.answers.router import QuestionRouter
from tocsin.investigations.metrics import InvestigationMetrics
from tocsin.investigations.replay.comparison import ReplayResult, replay_session
from tocsin.investigations.runs.completion import FailureCause, FinishedRun, Finisher, RunFailure
from tocsin.investigations.runs.finishers import build_write_back_finisher
from tocsin.investigations.runs.worker import InvestigationWorker
from tocsin.investigations.sessions.ledger import StepPage, list_steps, load_step
from tocsin.investigations.sessions.queries import (
    LoadedSession,
    SessionPage,
    describe_steps,
    find_session,
    list_sessions,
    load_session,
    render_session,
)
from tocsin.investigations.sessions.repository import (
    INVESTIGATIONS,
    NewSession,
    add_message,
    cancel_session,
    cancel_waiting,
    count_waiting,
    create_session,
    create_sessions,
    load_report,
)

__all__ = [
    "INVESTIGATIONS",
    "FailureCause",
    "FinishedRun",
    "Finisher",
    "HistoryAnswers",
    "InvestigationMetrics",
    "InvestigationWorker",
    "LoadedSession",
    "NewSession",
    "ProviderEventSearch",
    "QuestionRouter",
    "ReplayResult",
    "RunFailure",
    "SessionPage",
    "SourceReply",
    "StepPage",
    "add_message",
    "build_write_back_finisher",
    "cancel_session",
    "cancel_waiting",
    "count_waiting",
    "create_session",
    "create_sessions",
    "describe_steps",
    "find_session",
    "list_sessions",
    "list_steps",
    "load_report",
    "load_session",
    "load_step",
    "render_session",
    "replay_session",
]
