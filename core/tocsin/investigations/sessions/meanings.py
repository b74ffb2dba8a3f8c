"""What the steps of a ledger were, in a sentence each, for those who read what cites them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, RowMapping, select

from tocsin.model import QueryOutcome
from tocsin.store.tables import session_steps

_MAX_NAMED = 3
"""So many of what a question is about are named."""
_s = session_steps.c
_steps = select(_s.number, _s.kind, _s.asked_of, _s.question, _s.outcome, _s.reason, _s.conclusion)
_QUESTION_PHRASES = {
    "who-is-there": "who can be asked",
    "incidents-numbered": "for incident",
    "incidents-about": "for incidents about",
    "incidents-within": "for the incidents of the time",
    "sightings-of": "what is known of",
    "neighbours-of": "what is around",
    "events-of": "for events of",
    "enrichments-of": "what it knows of",
    "matching": "what fits",
}


def describe_steps(connection: Connection, session_id: str) -> dict[str, str]:
    """Return a sentence for each step of a session, by what cites it: `step:12`."""
    rows = connection.execute(_steps.where(_s.session_id == session_id)).mappings()
    return {f"step:{row['number']}": _describe_step(row) for row in rows}


def _describe_step(row: RowMapping) -> str:
    if row["conclusion"] is not None:
        return f"Concluded: {row['conclusion']}"
    source = row["asked_of"].replace(":", " ", 1)
    wanted = _QUESTION_PHRASES.get(row["kind"], row["kind"].replace("-", " "))
    words = f"Asked {source} {wanted}{_describe_subject(row['question'])}"
    if row["outcome"] == QueryOutcome.ANSWERED:
        return words + (f" (in part: {row['reason']})" if row["reason"] else "")
    return f"{words}: {row['outcome']}, {row['reason']}"


def _describe_subject(question: str | None) -> str:
    """Return what a question is about, as far as few words say it."""
    asked: Mapping[str, Any] = orjson.loads(question or "{}")
    entities = [asked["entity"]] if "entity" in asked else asked.get("entities", [])
    named = [entity["value"] for entity in entities] or list(map(str, asked.get("numbers", [])))
    if text := asked.get("text"):
        named = [repr(text)]
    more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
    return f" {', '.join(named[:_MAX_NAMED])}{more}" if named else ""
