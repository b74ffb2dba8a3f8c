"""Ledger of a session: one row for each question with its answer, and for each conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, cast

import orjson
from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from tocsin.clock import isoformat
from tocsin.investigations.codec import (
    decode_answer,
    decode_question,
    encode_question,
    question_kind,
)
from tocsin.investigations.sessions.packed_steps import (
    Bases,
    StepPacker,
    unpack_question,
    unpack_step,
)
from tocsin.model import Phase, QueryOutcome, QueryResult, Question
from tocsin.store.tables import session_steps

CONCLUSION = "conclusion"
"""The kind of a step without a question."""
MAX_CONCLUSION = 10_000
_MILLISECOND = timedelta(milliseconds=1)
_s = session_steps.c


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStep:
    """One row of the ledger: a question with its answer, or a conclusion."""

    number: int
    """Number within the session, from 1."""
    run: int
    phase: Phase
    kind: str
    started_at: datetime
    duration_ms: int = 0
    elapsed_ms: int
    """Duration of the run at the end of the step."""
    asked_of: str | None = None
    question: str | None = None
    outcome: QueryOutcome | None = None
    answer: str | None = None
    reason: str | None = None
    conclusion: str | None = None
    evidence: tuple[str, ...] | None = None

    @property
    def reference(self) -> str:
        """Reference by which it is cited: `step:12`."""
        return f"step:{self.number}"

    @property
    def elapsed(self) -> timedelta:
        """Duration of the run at the end of the step."""
        return self.elapsed_ms * _MILLISECOND


_COLUMNS = [
    *(session_steps.c[field.name] for field in fields(LedgerStep)),
    session_steps.c.packed,
    session_steps.c.base,
]


def append_steps(
    connection: Connection,
    session_id: str,
    steps: Sequence[LedgerStep],
    packer: StepPacker | None = None,
) -> None:
    """Store steps of one run, compressed; the caller holds the session's lease."""
    packer = packer or StepPacker()
    if steps:
        connection.execute(
            insert(session_steps), [_to_row(session_id, step, packer) for step in steps]
        )


def _to_row(session_id: str, step: LedgerStep, packer: StepPacker) -> dict[str, Any]:
    row = {"session_id": session_id, **asdict(step), "packed": None, "base": None}
    if step.question is not None:
        packed = packer.pack(step.number, step.kind, step.question, step.answer)
        row |= {"question": None, "answer": None, **asdict(packed)}
    return row


def replace_steps(connection: Connection, session_id: str, steps: Sequence[LedgerStep]) -> None:
    """Store the whole ledger of a session again, with changed content."""
    drop_steps(connection, session_id, 0)
    for run in sorted({step.run for step in steps}):
        append_steps(connection, session_id, [step for step in steps if step.run == run])


def drop_steps(connection: Connection, session_id: str, first: int) -> None:
    """Delete every step from this number on."""
    beyond = delete(session_steps).where(_s.session_id == session_id, _s.number >= first)
    connection.execute(beyond)


def load_steps(connection: Connection, session_id: str, run: int | None = None) -> list[LedgerStep]:
    """Return the steps of a run, or of all runs, in order."""
    query = select(*_COLUMNS).where(_s.session_id == session_id).order_by(_s.number)
    if run is not None:
        query = query.where(_s.run == run)
    rows = connection.execute(query).mappings().all()
    bases = _load_bases(connection, session_id, rows)
    return [_to_step(row, bases) for row in rows]


def _load_bases(connection: Connection, session_id: str, rows: Sequence[RowMapping]) -> Bases:
    """Return the bases of these steps."""
    known = {row["number"]: row["packed"] for row in rows}
    wanted = {row["base"] for row in rows if row["base"] is not None}
    missing = select(_s.number, _s.packed).where(
        _s.session_id == session_id, _s.number.in_(wanted - known.keys())
    )
    found = connection.execute(missing).all() if wanted - known.keys() else ()
    return {number: known[number] for number in wanted & known.keys()} | dict(map(tuple, found))


def find_last_number(connection: Connection, session_id: str, before_run: int) -> int:
    """Return the number of the last step of earlier runs, 0 if there is none."""
    earlier = select(func.max(_s.number)).where(_s.session_id == session_id, _s.run < before_run)
    return connection.scalars(earlier).one() or 0


def _to_step(row: RowMapping, bases: Bases) -> LedgerStep:
    values = {name: value for name, value in row.items() if name not in ("packed", "base")}
    question, answer = _read_content(row, bases)
    known = {
        "question": question,
        "answer": answer,
        "phase": Phase(row["phase"]),
        "outcome": None if row["outcome"] is None else QueryOutcome(row["outcome"]),
        "evidence": None if row["evidence"] is None else tuple(row["evidence"]),
    }
    return LedgerStep(**{**values, **known})


def _read_content(row: RowMapping, bases: Bases) -> tuple[str | None, str | None]:
    """Return the question and the answer of a step, which older rows hold as text."""
    if row["packed"] is None:
        return row["question"], row["answer"]
    return unpack_step(row["packed"], _find_base(row, bases))


def _read_question(row: RowMapping, bases: Bases) -> str | None:
    if row["packed"] is None:
        return cast("str | None", row["question"])
    return unpack_question(row["packed"], _find_base(row, bases))


def _find_base(row: RowMapping, bases: Bases) -> bytes | None:
    return None if row["base"] is None else bases[row["base"]]


@dataclass(frozen=True, slots=True)
class StepPage:
    """One page of a ledger, the first step first."""

    steps: list[dict[str, Any]]
    total: int
    next: int | None
    """The value of `after` for the next page; None on the last page."""


_LISTED = [column for column in _COLUMNS if column.name != "answer"]


def list_steps(
    connection: Connection, session_id: str, *, limit: int, after: int = 0, run: int | None = None
) -> StepPage:
    """Return one page of a session's ledger, without the answers."""
    matching = [_s.session_id == session_id]
    matching += [] if run is None else [_s.run == run]
    page = select(*_LISTED).where(*matching, _s.number > after).order_by(_s.number)
    found = connection.execute(page.limit(limit + 1)).mappings().all()
    total = connection.scalars(select(func.count()).select_from(session_steps).where(*matching))
    bases = _load_bases(connection, session_id, found[:limit])
    return StepPage(
        [_represent_step(row, _read_question(row, bases)) for row in found[:limit]],
        total.one(),
        found[limit - 1]["number"] if len(found) > limit else None,
    )


def load_questions(connection: Connection, session_id: str) -> list[tuple[RowMapping, str | None]]:
    """Return the steps of a session without the answers, each with its question."""
    query = select(*_LISTED).where(_s.session_id == session_id).order_by(_s.number)
    rows = connection.execute(query).mappings().all()
    bases = _load_bases(connection, session_id, rows)
    return [(row, _read_question(row, bases)) for row in rows]


def load_step(connection: Connection, session_id: str, number: int) -> dict[str, Any] | None:
    """Return one step with its answer, None if there is none of this number."""
    query = select(*_COLUMNS).where(_s.session_id == session_id, _s.number == number)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    question, answer = _read_content(row, _load_bases(connection, session_id, [row]))
    return {**_represent_step(row, question), "answer": _loads(answer)}


def _represent_step(row: RowMapping, question: str | None) -> dict[str, Any]:
    names = ("number", "run", "phase", "kind", "asked_of")
    results = ("outcome", "reason", "conclusion", "evidence", "duration_ms")
    return {
        **{name: row[name] for name in names},
        "question": _loads(question),
        **{name: row[name] for name in results},
        "started_at": isoformat(row["started_at"]),
    }


def _loads(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def build_answer(step: LedgerStep, content: Any) -> QueryResult[Any]:
    """Return the answer of a step for the investigator."""
    outcome = step.outcome or QueryOutcome.ANSWERED
    return QueryResult(step=step.reference, outcome=outcome, content=content, reason=step.reason)


def match_answer(step: LedgerStep, question: Question[Any]) -> QueryResult[Any] | None:
    """Return the recorded answer to a question, None if the step records another question."""
    if step.kind != question_kind(type(question)) or step.question is None:
        return None
    try:
        is_same = step.question == encode_question(question)
        is_same = is_same or decode_question(step.kind, step.question) == question
        content = None if step.answer is None else decode_answer(step.kind, step.answer)
    except ValueError:  # written by another version
        return None
    return build_answer(step, content) if is_same else None


def is_same_conclusion(step: LedgerStep, text: str, evidence: Sequence[str]) -> bool:
    """Return whether a step records this conclusion."""
    return (step.kind, step.conclusion, step.evidence) == (CONCLUSION, text, tuple(evidence))
