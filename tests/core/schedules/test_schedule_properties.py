"""Whatever nodes and people do, in any order, every fire time is accounted for, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta

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
from sqlalchemy import delete

from schedule_harness import FAILURE, REPORT, Office
from tocsin.errors import RequestError
from tocsin.investigations import FailureCause, RunFailure, cancel_session
from tocsin.investigations.runs.completion import RunResult
from tocsin.investigations.runs.lease import RunLeaseLost
from tocsin.schedules import (
    change_schedule,
    delete_schedule,
    disable_schedule,
    enable_schedule,
    run_now,
)
from tocsin.schedules.admission import MAX_WAITING
from tocsin.schedules.due_schedules import fire_due
from tocsin.store import open_database
from tocsin.store.tables import (
    events,
    schedule_runs,
    schedules,
    session_messages,
    session_steps,
    sessions,
)
from tocsin.testing import ManualClock

ENDINGS = {
    "completed": RunResult(report=REPORT),
    "failed": RunResult(failure=FAILURE),
    "timed out": RunResult(failure=RunFailure(FailureCause.TIMEOUT, "it was not done in time")),
    "lost": RunResult(failure=RunFailure(FailureCause.LOST, "its nodes were lost")),
}


class Model:
    """What a schedule should be: a plain account, which knows nothing of how it is done."""

    def __init__(
        self, every: timedelta, grace: timedelta, limit: int, now: datetime, *, queues: bool, due_of
    ) -> None:
        self.every, self.anchor = every, now
        self.due_of = due_of
        self.grace, self.limit, self.queues = grace, limit, queues
        self.status = "active"
        self.reason: str | None = None
        self.last = now
        self.fires: list[datetime] = []
        self.failures = self.waiting = 0
        self.running_since: datetime | None = None
        self.is_taken_up = False
        self.ended: Counter[str] = Counter()
        self.disabled = self.begun = self.by_hand = 0

    def look(self, now: datetime, *, waits: bool = True) -> list[datetime]:
        """Return the fire times since the last that was seen; none where it is not active.

        One that has come and `waits` for its jitter is not seen yet.
        """
        seen = []
        if self.status == "active":
            at = self.anchor + self.every
            while (self.due_of(at) if waits else at) <= now:
                seen += [at] if at > self.last else []
                at += self.every
        self.fires += seen
        self.last = max([self.last, *seen])
        return seen

    def stop(self, now: datetime, status: str, reason: str | None) -> None:
        self.look(now, waits=False)
        self.status, self.reason, self.waiting = status, reason, 0

    @property
    def running(self) -> bool:
        return self.running_since is not None

    def begin(self, now: datetime) -> None:
        assert not self.running
        self.running_since, self.is_taken_up = now, False
        self.begun += 1

    def is_forgotten(self, now: datetime) -> bool:
        """Return whether no node has taken up in time what is to be run."""
        since = self.running_since
        return since is not None and not self.is_taken_up and now >= since + self.grace

    def end(self, state: str, now: datetime) -> None:
        self.ended[state] += 1
        self.running_since = None
        if state == "completed":
            self.failures = 0
        elif state == "failed":
            self.failures += 1
            if self.status == "active" and self.failures >= self.limit:
                self.stop(now, "disabled", "consecutive_failures")
                self.disabled += 1
        if self.waiting:
            self.waiting -= 1
            self.begin(now)


class Course(RuleBasedStateMachine):
    """Some nodes that share a database, and people who meddle."""

    url, nodes = None, 2
    ids = Bundle("ids")
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.office = self.runner.run(self._open())
        self.running_nodes = [self.office.node() for _ in range(self.nodes)]
        self.models: dict[str, Model] = {}
        self._number = 0
        self.write(_clear)

    async def _open(self) -> Office:
        return Office(open_database(self.url), self.clock)

    def teardown(self) -> None:
        self.runner.run(self.office.database.close())
        self.runner.close()

    def write(self, operation, *args):
        return self.runner.run(self.office.database.write(operation, *args))

    def do(self, action, schedule_id, *args):
        return self.runner.run(self.office.do(action, schedule_id, *args))

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @rule(
        target=ids,
        hours=st.integers(1, 3),
        limit=st.integers(1, 3),
        overlap=st.sampled_from(["skip", "queue"]),
        grace=st.sampled_from([10, 120]),
        jitter=st.sampled_from([None, "50m"]),
    )
    def create(self, hours, limit, overlap, grace, jitter):
        self._number += 1
        given = {"interval": f"{hours}h", "failure_limit": limit, "overlap": overlap}
        given["jitter"] = jitter
        made = self.runner.run(
            self.office.make(f"s{self._number}", misfire_grace=f"{grace}m", **given)
        )
        queues = overlap == "queue"
        every, late = timedelta(hours=hours), timedelta(minutes=grace)

        def due_of(at: datetime) -> datetime:
            return at + made.recurrence._delay(at)

        given = {"queues": queues, "due_of": due_of}
        self.models[made.id] = Model(every, late, limit, self.now, **given)
        return made.id

    @rule(minutes=st.integers(1, 400))
    def let_time_pass(self, minutes):
        self.clock.advance(minutes=minutes)

    @rule(node=st.integers(0, 2), at_once=st.booleans())
    def fire(self, node, at_once):
        nodes = self.running_nodes if at_once else [self.running_nodes[node % self.nodes]]

        async def all_fire():
            await asyncio.gather(*(self.office.fire(node) for node in nodes))

        self.runner.run(all_fire())
        for schedule_id, model in self.models.items():
            if model.look(self.now):
                self._account(schedule_id, model)

    def _account(self, schedule_id, model):
        """Take from the record what became of the latest; that it fits is for the invariants."""
        last = [row for row in self._runs(schedule_id) if row["trigger"] == "clock"][-1]
        if last["state"] == "running":
            model.begin(self.now)
        elif last["state"] == "waiting":
            assert model.running
            assert model.queues
            model.waiting += 1
        elif last["state"] == "skipped":
            assert model.running
            assert not model.queues or model.waiting == MAX_WAITING

    @rule()
    def crash_while_firing(self):
        def fire_and_crash(connection):
            fire_due(connection, self.now)
            raise ConnectionError

        with suppress(ConnectionError):
            self.write(fire_and_crash)

    @rule(target=leases, node=st.integers(1, 3))
    def take_up(self, node):
        taken = self.runner.run(self.office.take_up(node))
        for lease in taken:
            self.models[self._session(lease.session_id)["schedule_id"]].is_taken_up = True
        return multiple(*taken)

    @rule(lease=consumes(leases), how=st.sampled_from(list(ENDINGS)), crashes=st.booleans())
    def end(self, lease, how, crashes):
        if crashes:
            with suppress(ConnectionError, RunLeaseLost):
                self.runner.run(self.office.end(lease, ENDINGS[how], _crash))
        session = self._session(lease.session_id)
        try:
            self.runner.run(self.office.end(lease, ENDINGS[how]))
        except RunLeaseLost:
            return
        model = self.models[session["schedule_id"]]
        model.end("completed" if how == "completed" else "failed", self.now)

    @rule(schedule_id=ids)
    def cancel(self, schedule_id):
        running = [run for run in self._runs(schedule_id) if run["state"] == "running"]
        for run in running:
            self.write(cancel_session, run["session_id"], self.now)
            self.models[schedule_id].end("cancelled", self.now)
        self.sweep()

    @rule()
    def sweep(self):
        for model in self.models.values():
            if model.is_forgotten(self.now):
                model.end("missed", self.now)
        self.runner.run(self.running_nodes[0].settle_abandoned())

    @rule(schedule_id=ids)
    def run_by_hand(self, schedule_id):
        model = self.models[schedule_id]
        try:
            row = self.do(
                lambda connection, held, now: run_now(connection, held, "ana", now), schedule_id
            )
        except RequestError:
            assert model.status == "deleted" or (model.running and not model.queues)
            return
        model.by_hand += 1
        if row["state"] == "running":
            model.begin(self.now)
        else:
            model.waiting += row["state"] == "waiting"

    @rule(schedule_id=ids, hours=st.integers(1, 3), query=st.sampled_from(["one", "two"]))
    def edit(self, schedule_id, hours, query):
        model = self.models[schedule_id]
        if model.status == "deleted":
            return

        def change(connection, held, now):
            given = {"interval": timedelta(hours=hours), "query": query}
            definition = held.definition.model_copy(update=given)
            return change_schedule(connection, held, definition, now)

        self.do(change, schedule_id)
        if model.every != timedelta(hours=hours):
            model.look(self.now, waits=False)
            model.every, model.anchor = timedelta(hours=hours), self.now
            model.last = self.now

    @rule(schedule_id=ids)
    def disable(self, schedule_id):
        model = self.models[schedule_id]
        if model.status == "active":
            self.runner.run(self.office.stop(disable_schedule, schedule_id))
            model.stop(self.now, "disabled", "manual")

    @rule(schedule_id=ids)
    def enable(self, schedule_id):
        model = self.models[schedule_id]
        if model.status == "disabled":
            self.do(enable_schedule, schedule_id)
            model.status, model.reason, model.failures = "active", None, 0
            model.last = self.now

    @rule(schedule_id=ids)
    def delete(self, schedule_id):
        model = self.models[schedule_id]
        if model.status != "deleted":
            self.do(delete_schedule, schedule_id)
            model.stop(self.now, "deleted", None)

    @invariant()
    def every_fire_time_is_accounted_for_once(self):
        for schedule_id, model in self.models.items():
            told = [
                at
                for row in self._runs(schedule_id)
                if row["trigger"] == "clock"
                for at in _fire_times(row, model.fires)
            ]
            assert sorted(told) == sorted(model.fires)

    @invariant()
    def every_schedule_is_as_it_should_be(self):
        for schedule_id, model in self.models.items():
            stored = self.runner.run(self.office.load(schedule_id))
            assert (stored.status, stored.disabled_reason) == (model.status, model.reason)
            assert stored.consecutive_failures == model.failures
            assert (stored.next_run_at is not None) is (model.status == "active")
            states = Counter(row["state"] for row in self._runs(schedule_id))
            assert states["running"] == model.running
            assert states["waiting"] == model.waiting
            for state in ("completed", "failed", "cancelled"):
                assert states[state] == model.ended[state]

    @invariant()
    def every_run_has_one_session_and_every_ending_its_event(self):
        stored = self.runner.run(self.office.sessions())
        begun = Counter(row["schedule_id"] for row in stored)
        told = Counter(self.runner.run(self.office.told()))
        ended: Counter[str] = sum((model.ended for model in self.models.values()), Counter())
        assert begun == Counter(
            {id_: model.begun for id_, model in self.models.items() if model.begun}
        )
        assert told["investigation-completed"] == ended["completed"]
        assert told["investigation-failed"] == ended["failed"]
        assert told["schedule-disabled"] == sum(model.disabled for model in self.models.values())

    def _runs(self, schedule_id):
        return self.runner.run(self.office.runs(schedule_id))

    def _session(self, session_id):
        [row] = [
            session
            for session in self.runner.run(self.office.sessions())
            if session["id"] == session_id
        ]
        return row


def _fire_times(row, known: list[datetime]) -> list[datetime]:
    """Return the fire times that a run stands for."""
    if row["count"] == 1:
        return [row["fire_at"]]
    among = [at for at in known if row["fire_at"] <= at <= row["until"]]
    assert len(among) == row["count"]
    return among


def _crash(_connection, _ended) -> None:
    raise ConnectionError


def _clear(connection) -> None:
    """Remove what an earlier example has left."""
    for table in (schedule_runs, schedules, events, session_messages, session_steps, sessions):
        connection.execute(delete(table))


def course(url, nodes: int) -> type[Course]:
    return type("CourseOn", (Course,), {"url": url, "nodes": nodes})


@pytest.mark.parametrize("nodes", [2, 3])
def test_any_course(migrated_url, nodes):
    bounds = settings(max_examples=6, stateful_step_count=15)
    run_state_machine_as_test(course(migrated_url, nodes), settings=bounds)


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("nodes", [2, 3])
def test_any_long_course(migrated_url, nodes):
    bounds = settings(max_examples=50, stateful_step_count=40)
    run_state_machine_as_test(course(migrated_url, nodes), settings=bounds)
