"""State machine of a session: any sequence of actions leaves one holder and one state."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from tocsin.errors import RequestError
from tocsin.investigations import add_message, cancel_session, create_session
from tocsin.investigations.runs.assignment import RunAssignment, load_assignment
from tocsin.investigations.runs.completion import FailureCause, RunFailure, RunResult, finish_run
from tocsin.investigations.runs.lease import (
    RunLease,
    RunLeaseLost,
    claim_runs,
    release_leases,
    renew_leases,
)
from tocsin.investigations.runs.recorder import LedgerChanges, store_changes
from tocsin.investigations.sessions.ledger import LedgerStep
from tocsin.model import Confidence, Persona, Phase, Report, Statement, Verdict, Window
from tocsin.store import open_database
from tocsin.store.tables import session_messages, session_steps, sessions

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
REPORT = Report(
    title="it was nothing",
    query="look",
    persona=Persona.ANALYST,
    window=Window(NOW, NOW),
    verdict=Verdict.BENIGN,
    confidence=Confidence.LOW,
    risk_score=0.0,
    summary=(Statement("It was nothing.", ("step:1",)),),
)
UNDER_WAY = ("queued", "running")
FAILED = RunResult(failure=RunFailure(FailureCause.INVESTIGATION, "no"))


class Model:
    """What a session should be."""

    def __init__(self) -> None:
        self.status = "queued"
        self.holder: RunLease | None = None
        self.node: int | None = None
        self.run = 1
        self.messages = 1
        self.steps = 0

    def end(self, status: str) -> None:
        self.status, self.holder, self.node = status, None, None

    def queue(self) -> None:
        self.end("queued")


class Course(RuleBasedStateMachine):
    """Two nodes of which neither attends, so that each takes the other to be gone."""

    url = None
    ids = Bundle("ids")
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.database = self.runner.run(self._open())
        self.models: dict[str, Model] = {}
        self.assignments: dict[RunLease, RunAssignment] = {}
        self._cancel_all()

    async def _open(self):
        return open_database(self.url)

    def _cancel_all(self) -> None:
        """End what an earlier example has left."""

        def cancel_all(connection) -> None:
            left = select(sessions.c.id).where(sessions.c.status.in_(UNDER_WAY))
            for session_id in connection.scalars(left).all():
                cancel_session(connection, session_id, NOW)

        self.write(cancel_all)

    def teardown(self) -> None:
        self.runner.run(self.database.close())
        self.runner.close()

    def read(self, operation, *args):
        return self.runner.run(self.database.read(operation, *args))

    def write(self, operation, *args, **kwargs):
        return self.runner.run(self.database.write(operation, *args, **kwargs))

    def _holds(self, lease: RunLease) -> bool:
        return self.models[lease.session_id].holder == lease

    @rule(target=ids)
    def start(self):
        asked = {"query": "look", "persona": Persona.ANALYST, "provider": None}
        session_id = self.write(create_session, **asked, by="ana", now=NOW)
        self.models[session_id] = Model()
        return session_id

    @rule(target=leases, node=st.sampled_from([1, 2]), most=st.integers(1, 3))
    def claim(self, node, most):
        free = {
            session_id
            for session_id, model in self.models.items()
            if model.status == "queued" or (model.status == "running" and model.node != node)
        }
        taken = self.write(claim_runs, node, most, NOW)
        assert {lease.session_id for lease in taken} <= free
        assert len(taken) == min(most, len(free))
        for lease in taken:
            model = self.models[lease.session_id]
            model.status, model.holder, model.node = "running", lease, node
            self.assignments[lease] = self.read(load_assignment, lease)
        return multiple(*taken)

    @rule(lease=leases)
    def take_a_step(self, lease):
        model = self.models[lease.session_id]
        step = LedgerStep(
            number=model.steps + 1,
            run=self.assignments[lease].run,
            phase=Phase.GATHER,
            kind="conclusion",
            started_at=NOW,
            elapsed_ms=0,
        )
        try:
            self.write(store_changes, lease, LedgerChanges((step,)))
        except RunLeaseLost:
            assert not self._holds(lease)
        else:
            assert self._holds(lease)
            model.steps += 1

    @rule(lease=leases)
    def hold_on(self, lease):
        lost = self.write(renew_leases, {lease: {"phase": None, "steps": 0, "asked": 0}}, NOW)
        assert (lost == []) is self._holds(lease)

    @rule(lease=leases, ending=st.sampled_from([RunResult(report=REPORT), FAILED]))
    def end(self, lease, ending):
        assignment, more = self.assignments[lease], {"progress": {}, "finishers": (), "now": NOW}
        try:
            self.write(finish_run, lease, assignment, ending, **more)
        except RunLeaseLost:
            assert not self._holds(lease)
        else:
            assert self._holds(lease)
            model = self.models[lease.session_id]
            model.messages += ending.report is not None
            model.end(ending.status)

    @rule(lease=consumes(leases))
    def give_back(self, lease):
        self.write(release_leases, [lease])
        if self._holds(lease):
            self.models[lease.session_id].queue()

    @rule(session_id=ids)
    def cancel(self, session_id):
        self.write(cancel_session, session_id, NOW)
        model = self.models[session_id]
        if model.status in UNDER_WAY:
            model.end("cancelled")

    @rule(session_id=ids)
    def send_a_message(self, session_id):
        model = self.models[session_id]
        with suppress(RequestError):
            self.write(add_message, session_id, "and?", "ana", NOW)
            assert model.status not in UNDER_WAY
            model.queue()
            model.run += 1
            model.messages += 1
            return
        assert model.status in UNDER_WAY

    @invariant()
    def every_session_is_as_it_should_be(self):
        stored = self.read(_stored, list(self.models))
        for session_id, model in self.models.items():
            row, messages, steps = stored[session_id]
            token = model.holder and model.holder.token
            assert (row.status, row.run, row.lease) == (model.status, model.run, token)
            assert (row.completed_at is None) is (model.status in UNDER_WAY)
            assert messages == list(range(1, model.messages + 1))
            assert steps == list(range(1, model.steps + 1))


def _stored(connection, ids) -> dict:
    rows = connection.execute(select(sessions).where(sessions.c.id.in_(ids)))
    of = {row.id: (row, [], []) for row in rows}
    for place, table in ((1, session_messages), (2, session_steps)):
        numbered = select(table.c.session_id, table.c.number).where(table.c.session_id.in_(ids))
        for session_id, number in connection.execute(numbered.order_by(table.c.number)):
            of[session_id][place].append(number)
    return of


def course(url) -> type[Course]:
    return type("CourseOn", (Course,), {"url": url})


def test_any_course(migrated_url):
    bounds = settings(max_examples=4, stateful_step_count=12)
    run_state_machine_as_test(course(migrated_url), settings=bounds)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_any_long_course(migrated_url):
    bounds = settings(max_examples=100, stateful_step_count=40)
    run_state_machine_as_test(course(migrated_url), settings=bounds)
