"""Replay of sessions from their ledgers, without asking any source."""

from tocsin.investigations.replay.comparison import ReplayResult, replay_session

__all__ = [
    "ReplayResult",
    "replay_session",
]
