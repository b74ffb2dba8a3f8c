"""Losses of accepted pushes: how they are described and recorded."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from tocsin.hookspecs import IntakePosition
from tocsin.incidents.coverage import ReadFailure, StreamKey, record_failure

LOST_PUSHES = "lost-pushes"
"""The outcome in the ledger of accepted pushes that the intake no longer has."""


def record_loss(connection: Connection, key: StreamKey, reason: str, now: datetime) -> None:
    """Record that the intake lost pushes to a provider, or might have lost some."""
    record_failure(connection, key, ReadFailure(LOST_PUSHES, reason), now, continues=False)


def describe_skip(before: IntakePosition, start: IntakePosition, accepted: int) -> str:
    """Return what was lost if the pushes after the position `before` begin at `start`.

    `accepted` is the number of the last push that is known to be accepted into the earlier stream.
    """
    if before.stream != start.stream:
        known = f", at least those up to number {accepted}," if accepted > before.sequence else ""
        return (
            f"the intake's stream was lost and created again; the pushes that the earlier stream "
            f"accepted after number {before.sequence}{known} are gone"
        )
    if start.sequence < before.sequence:
        return (
            f"the intake's stream ends at number {start.sequence}, although Tocsin has already "
            f"read number {before.sequence}; pushes that the intake accepted after "
            f"number {before.sequence} are lost, some of which might have been for this provider"
        )
    return (
        f"the intake no longer contains the pushes {before.sequence + 1} to {start.sequence}, some "
        f"of which might have been for this provider"
    )


def describe_reuse(last: IntakePosition, reused: IntakePosition) -> str:
    """Return what was lost if the push after the one at `last` was accepted at `reused`."""
    return (
        f"the intake gave number {reused.sequence} to a new push, although it had accepted pushes "
        f"up to number {last.sequence}; the earlier pushes {reused.sequence} to {last.sequence} "
        "are lost unless Tocsin had already read them, and might have been for other providers"
    )
