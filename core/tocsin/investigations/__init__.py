"""Investigations: sessions, the ledger of what was asked in them, and running them to their end."""

from tocsin.investigations.answering.answers import Answers
from tocsin.investigations.answering.history import History
from tocsin.investigations.answering.providers import ProviderEvents
from tocsin.investigations.answering.reply import Reply
from tocsin.investigations.following.telling import tell_incidents
from tocsin.investigations.measuring import Meter
from tocsin.investigations.replaying.replay import Replayed, replay
from tocsin.investigations.running.ending import Ended, Failure, FailureCause, Finisher
from tocsin.investigations.running.loop import Investigations
from tocsin.investigations.sessions.ledger import StepPage, list_steps, load_step
from tocsin.investigations.sessions.meanings import step_meanings
from tocsin.investigations.sessions.reads import (
    LoadedSession,
    SessionPage,
    find_session,
    list_sessions,
    load_session,
    render_session,
)
from tocsin.investigations.sessions.records import (
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
    "Answers",
    "Ended",
    "Failure",
    "FailureCause",
    "Finisher",
    "History",
    "Investigations",
    "LoadedSession",
    "Meter",
    "NewSession",
    "ProviderEvents",
    "Replayed",
    "Reply",
    "SessionPage",
    "StepPage",
    "add_message",
    "cancel_session",
    "cancel_waiting",
    "count_waiting",
    "create_session",
    "create_sessions",
    "find_session",
    "list_sessions",
    "list_steps",
    "load_report",
    "load_session",
    "load_step",
    "render_session",
    "replay",
    "step_meanings",
    "tell_incidents",
]
