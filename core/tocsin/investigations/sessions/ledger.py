"""Ledger of a session: one row for each question with its answer, and for each conclusion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

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
    pack_chunk,
    unpack_chunk,
    unpack_question,
    unpack_step,
)
from tocsin.model import Phase, QueryOutcome, QueryResult, Question
from tocsin.store.tables import session_steps

CONCLUSION = "conclusion"
"""The kind of a step without a question."""
MAX_CONCLUSION = 10_000
CHUNK_STEPS = 128
_CHUNK_SIZE = 512 * 1024  # characters of answers: who reads one step decompresses its chunk
_MILLISECOND = timedelta(milliseconds=1)
_s = session_steps.c
StepReader = Callable[[bytes, bytes | None], tuple[str, str | None]]
"""Returns the question and the answer of a compressed step, given its compressed base."""


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


_NAMES = [field.name for field in fields(LedgerStep)]
_COLUMNS = [
    *(session_steps.c[name] for name in _NAMES),
    session_steps.c.packed,
    session_steps.c.base,
    session_steps.c.chunk,
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
    """Store the whole ledger of a session that has ended again, with changed content."""
    drop_steps(connection, session_id, 0)
    for run in sorted({step.run for step in steps}):
        left = [step for step in steps if step.run == run]
        while left:
            chunk = _take_chunk(left)
            _insert_chunk(connection, session_id, chunk)
            left = left[: -len(chunk)]


def drop_steps(connection: Connection, session_id: str, first: int) -> None:
    """Delete every step from this number on."""
    beyond = delete(session_steps).where(_s.session_id == session_id, _s.number >= first)
    connection.execute(beyond)


def compact_steps(connection: Connection, session_id: str) -> bool:
    """Compress the last steps that are stored one by one together, and return if there were any.

    The caller knows that their run has ended. The last come first, since steps refer to earlier
    ones.
    """
    rows = select(*_COLUMNS).where(_s.session_id == session_id, _s.steps.is_(None))
    found = connection.execute(rows.order_by(_s.number.desc()).limit(CHUNK_STEPS)).mappings().all()
    last_run = [row for row in found if row["run"] == found[0]["run"]]
    if not last_run:
        return False
    chunk = _take_chunk(list(_read_steps(connection, session_id, last_run[::-1])))
    theirs = _s.number.between(chunk[0].number, chunk[-1].number)
    connection.execute(delete(session_steps).where(_s.session_id == session_id, theirs))
    _insert_chunk(connection, session_id, chunk)
    return True


def _take_chunk(steps: Sequence[LedgerStep]) -> Sequence[LedgerStep]:
    """Return the last steps, as many as make a chunk."""
    size, count = 0, 0
    for step in steps[: -CHUNK_STEPS - 1 : -1]:
        size += len(step.answer or "")
        if count and size > _CHUNK_SIZE:
            break
        count += 1
    return steps[-count:]


def _insert_chunk(connection: Connection, session_id: str, steps: Sequence[LedgerStep]) -> None:
    """Store steps of one run as a row with the columns of the last."""
    shown = {**asdict(steps[-1]), "question": None, "answer": None}
    chunk = pack_chunk([asdict(step) for step in steps])
    row = {"session_id": session_id, **shown, "chunk": chunk, "steps": len(steps)}
    connection.execute(insert(session_steps), row)


def load_steps(
    connection: Connection,
    session_id: str,
    run: int | None = None,
    read: StepReader = unpack_step,
) -> list[LedgerStep]:
    """Return the steps of a run, or of all runs, in order."""
    query = select(*_COLUMNS).where(_s.session_id == session_id).order_by(_s.number)
    if run is not None:
        query = query.where(_s.run == run)
    rows = connection.execute(query).mappings().all()
    return list(_read_steps(connection, session_id, rows, read))


def _read_steps(
    connection: Connection,
    session_id: str,
    rows: Sequence[RowMapping],
    read: StepReader = unpack_step,
) -> Iterator[LedgerStep]:
    """Yield the steps of these rows."""
    bases = _load_bases(connection, session_id, rows)
    for row in rows:
        if row["chunk"] is None:
            yield _to_step(row, bases, read)
        else:
            yield from map(_restore_step, unpack_chunk(row["chunk"]))


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


def _to_step(row: RowMapping, bases: Bases, read: StepReader) -> LedgerStep:
    values = {name: row[name] for name in _NAMES}
    if row["packed"] is not None:  # older rows hold the question and the answer as text
        base = None if row["base"] is None else bases[row["base"]]
        values["question"], values["answer"] = read(row["packed"], base)
    return _build_step(values)


def _restore_step(values: dict[str, Any]) -> LedgerStep:
    return _build_step({**values, "started_at": datetime.fromisoformat(values["started_at"])})


def _build_step(values: dict[str, Any]) -> LedgerStep:
    known = {
        "phase": Phase(values["phase"]),
        "outcome": None if values["outcome"] is None else QueryOutcome(values["outcome"]),
        "evidence": None if values["evidence"] is None else tuple(values["evidence"]),
    }
    return LedgerStep(**{**values, **known})


@dataclass(frozen=True, slots=True)
class StepPage:
    """One page of a ledger, the first step first."""

    steps: list[dict[str, Any]]
    total: int
    next: int | None
    """The value of `after` for the next page; None on the last page."""


def list_steps(
    connection: Connection, session_id: str, *, limit: int, after: int = 0, run: int | None = None
) -> StepPage:
    """Return one page of a session's ledger, without the answers."""
    matching = [_s.session_id == session_id]
    matching += [] if run is None else [_s.run == run]
    page = select(*_COLUMNS).where(*matching, _s.number > after).order_by(_s.number)
    rows = connection.execute(page.limit(limit + 1)).mappings().all()
    steps = _read_steps(connection, session_id, rows, unpack_question)
    found = list(islice((step for step in steps if step.number > after), limit + 1))
    total = select(func.coalesce(func.sum(func.coalesce(_s.steps, 1)), 0)).where(*matching)
    return StepPage(
        [_represent_step(step) for step in found[:limit]],
        connection.scalars(total).one(),
        found[limit - 1].number if len(found) > limit else None,
    )


def load_questions(connection: Connection, session_id: str) -> list[LedgerStep]:
    """Return the steps of a session; answers may be missing, to save time."""
    return load_steps(connection, session_id, read=unpack_question)


def load_step(connection: Connection, session_id: str, number: int) -> dict[str, Any] | None:
    """Return one step with its answer, None if there is none of this number."""
    query = select(*_COLUMNS).where(_s.session_id == session_id, _s.number >= number)
    rows = connection.execute(query.order_by(_s.number).limit(1)).mappings().all()
    for step in _read_steps(connection, session_id, rows):
        if step.number == number:
            return {**_represent_step(step), "answer": _loads(step.answer)}
    return None


def _represent_step(step: LedgerStep) -> dict[str, Any]:
    names = ("number", "run", "phase", "kind", "asked_of")
    return {
        **{name: getattr(step, name) for name in names},
        "question": _loads(step.question),
        **{name: getattr(step, name) for name in ("outcome", "reason", "conclusion")},
        "evidence": None if step.evidence is None else list(step.evidence),
        "duration_ms": step.duration_ms,
        "started_at": isoformat(step.started_at),
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
