"""Delivery queue in the SQLite or PostgreSQL database.

A claim takes a lease and moves `due_at` to the end of the lease. If a node dies, its deliveries
therefore become due again automatically, and as soon as the node is known to be gone, other nodes
make them due immediately. The lease's name is the fencing token. If a node no longer holds a lease,
its statements change nothing, and the node learns that it lost the lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from types import MappingProxyType

from sqlalchemy import Connection, RowMapping, select, update

from tocsin.delivery.queue.remote_objects import mark_closed_objects, store_remote_objects
from tocsin.delivery.queue.statements import (
    CLAIM,
    EXTEND,
    OFFER,
    RELEASE,
    RELEASE_BEGUN,
    SELECT_CLAIMABLE,
    SELECT_CLAIMED,
    SELECT_DUE,
    SELECT_LEASES,
    SELECT_OBJECTS,
    SELECT_PREDECESSORS,
    SELECT_READY,
    SETTLE,
)
from tocsin.delivery.queue.states import (
    ON_HOLD,
    PENDING,
    AttemptResult,
    ClaimedDelivery,
    DeliveryLease,
    Vacancy,
    build_claim,
    build_new_claim,
    queue_topic,
)
from tocsin.identifiers import derive_id, new_id
from tocsin.model import Event
from tocsin.store import (
    LEASE_DURATION,
    Database,
    Row,
    announce,
    find_absent_nodes,
    lock_exclusively,
)
from tocsin.store.tables import deliveries

HEARTBEAT = LEASE_DURATION / 6
_RECHECK_DELAY = timedelta(seconds=2)
"""How often to check a delivery that waits for an earlier one."""


class DeliveryQueue:
    """The delivery queue of one node, on a database that nodes may share.

    `holder` is the node's number. At any time, a delivery belongs to at most one worker, and no
    delivery is lost. Claims and results give way to other writers, so that Tocsin first stores
    what arrives.
    """

    def __init__(self, database: Database, holder: int = 0) -> None:
        self._database = database
        self.holder = holder
        """The number of this node."""
        self._suspects: frozenset[int] = frozenset()

    def offer(
        self,
        connection: Connection,
        wanted: Iterable[tuple[Event, str]],
        now: datetime,
        on_hold: Iterable[tuple[Event, str, str]] = (),
        vacancies: Mapping[str, Vacancy] = MappingProxyType({}),
    ) -> dict[str, list[ClaimedDelivery]]:
        """Queue events for destinations, and return, by destination, those already leased.

        `on_hold` also contains the reasons. The method runs in the transaction that routes the
        events, so both happen or neither. `vacancies` are those of this node's workers that need
        neither an order nor a permit. Deliveries are leased to them as if they had claimed them,
        unless there is something else to claim; their events must be complete. All other
        deliveries are due immediately. A delivery's ID contains the time of its event, so both are
        in partitions of the same month.
        """
        leases = self._lease_new(connection, vacancies, now)
        leased: dict[str, list[ClaimedDelivery]] = {name: [] for name in leases}
        rows, topics = [], set()
        for event, destination in wanted:
            id_, lease = derive_id("dlv", event.id), leases.get(destination)
            if lease is None or len(leased[destination]) == vacancies[destination].most:
                rows.append(_new_row(id_, event, destination, now))
                topics.add(queue_topic(destination))
            else:
                rows.append(_new_row(id_, event, destination, now, lease=lease))
                leased[destination].append(build_new_claim(id_, event, lease))
        rows += [
            _new_row(derive_id("dlv", event.id), event, to, now, reason=reason)
            for event, to, reason in on_hold
        ]
        OFFER.run(connection, rows)
        for topic in topics:
            announce(connection, topic)
        return {name: claims for name, claims in leased.items() if claims}

    def _lease_new(
        self, connection: Connection, vacancies: Mapping[str, Vacancy], now: datetime
    ) -> dict[str, DeliveryLease]:
        """Return a lease for each vacancy that can receive new deliveries."""
        if not vacancies:
            return {}
        ready = connection.scalars(SELECT_READY, {"names": sorted(vacancies), "now": now})
        return {name: self._new_lease(now, vacancies[name].tenant_key) for name in ready}

    def _new_lease(self, now: datetime, tenant_key: str) -> DeliveryLease:
        return DeliveryLease(new_id("lease"), now + LEASE_DURATION, self.holder, tenant_key)

    async def has_claimable(
        self, destination: str, now: datetime, *, in_order: bool = False, early: bool = False
    ) -> bool:
        """Return whether a claim would find a delivery, without making writers wait."""
        return await self._database.lookup(
            _has_claimable, destination, now, in_order=in_order, early=early
        )

    async def claim(
        self,
        destination: str,
        most: int,
        now: datetime,
        *,
        in_order: bool = False,
        early: bool = False,
        tenant_key: str = "",
    ) -> list[ClaimedDelivery]:
        """Lease up to `most` due deliveries of a destination, longest due first, and return them.

        With `in_order`, only the oldest waiting delivery of each subject qualifies. It does not
        qualify while another one is in progress, or before older deliveries of a subject that its
        event is related to. With `early`, deliveries qualify before they are due, as probes.
        `tenant_key` identifies where the channel keeps its objects; objects elsewhere are ignored.
        """
        lease = self._new_lease(now, tenant_key)
        claim = self._database.write_behind
        return await claim(
            _claim, destination, most, now, lease=lease, in_order=in_order, early=early
        )

    async def extend(
        self, claims: Sequence[ClaimedDelivery], now: datetime
    ) -> list[ClaimedDelivery]:
        """Extend the leases by their full length, and return the claims whose lease was lost."""
        return await self._database.write(_extend, claims, now)

    async def settle(self, ended: Sequence[AttemptResult]) -> list[AttemptResult]:
        """Store results of attempts, and return those that came late: their lease was lost."""
        if all(attempt.remote_id is None and not attempt.closed for attempt in ended):
            return await self._database.execute_behind(_settle, ended)
        return await self._database.write_behind(_settle_with_objects, ended)

    async def release(
        self, claims: Sequence[ClaimedDelivery], now: datetime, *, begun: bool = False
    ) -> None:
        """Make claimed deliveries due at once, untried or `begun`, unless their lease was lost."""
        await self._database.write(_release, claims, now, begun=begun)

    async def take_over(self, now: datetime, *, certain: bool = False) -> int:
        """Make the deliveries of nodes that are gone due, and return their number.

        Unless `certain` is true, a node must be missing on two consecutive calls, because it may
        only be reconnecting.
        """
        gone = await self._database.write(_find_gone, self.holder)
        taken, self._suspects = gone if certain else gone & self._suspects, gone
        return await self._database.write(_take_over, taken, now) if taken else 0


def _new_row(
    id_: str,
    event: Event,
    destination: str,
    now: datetime,
    *,
    reason: str | None = None,
    lease: DeliveryLease | None = None,
) -> Row:
    state, finished = (PENDING, None) if reason is None else (ON_HOLD, now)
    facts = (id_, event.id, destination, event.subject, state, 0, 0)
    if lease is None:
        return (*facts, now, now, reason, finished, None, None, None)
    leased = (lease.token, lease.node, now + HEARTBEAT)
    return (*facts, lease.until, now, reason, finished, *leased)


def _has_claimable(
    connection: Connection, destination: str, now: datetime, *, in_order: bool, early: bool
) -> bool:
    parameters: dict[str, object] = {"at_destination": destination}
    if in_order or not early:  # PostgreSQL cannot infer the type of a parameter that is not used
        parameters |= {"now": now}
    return connection.execute(SELECT_CLAIMABLE[in_order, early], parameters).first() is not None


def _claim(
    connection: Connection,
    destination: str,
    most: int,
    now: datetime,
    *,
    lease: DeliveryLease,
    in_order: bool,
    early: bool,
) -> list[ClaimedDelivery]:
    if in_order:
        lock_exclusively(connection, f"claims for {destination}")
    parameters = {"at_destination": destination, "most": most, "now": now}
    taking = {
        "lease_name": lease.token,
        "leased_until": lease.until,
        "by_holder": lease.node,
        "beginning_by": now + HEARTBEAT,
    }
    # PostgreSQL cannot infer the type of a parameter that the statement does not use
    if early and not in_order:
        del parameters["now"]
    due = connection.execute(SELECT_DUE[in_order, early], parameters).all()
    if not due:
        return []
    ids = [row.id for row in due]
    connection.execute(CLAIM, {"ids": ids, **taking})
    event_ids = [row.event_id for row in due]
    asked = {"ids": ids, "event_ids": event_ids, "at_tenant": lease.tenant_key}
    rows = connection.execute(SELECT_CLAIMED, asked).mappings()
    by_id = sorted(rows, key=itemgetter("delivery_id"))
    if in_order:
        by_id = _release_followers(connection, destination, by_id, now)
    known = _known_objects(connection, destination, by_id, lease.tenant_key)
    return [build_claim(row, lease, known, is_probe=early) for row in by_id]


def _release_followers(
    connection: Connection, destination: str, rows: Sequence[RowMapping], now: datetime
) -> list[RowMapping]:
    """Release rows that wait for older deliveries on related subjects; return the others."""
    ours, waits = list[RowMapping](), dict[str, datetime]()
    in_front = _find_predecessors(connection, destination, rows)
    for row in rows:
        before = [
            other
            for other in in_front
            if other["subject"] in row["related"] and other["id"] < row["delivery_id"]
        ]
        if before:
            waits[row["delivery_id"]] = max(_recheck_at(other, now) for other in before)
        else:
            ours.append(row)
    for id_, due_at in waits.items():
        connection.execute(RELEASE, {"ids": [id_], "to_due_at": due_at})
    return ours


def _find_predecessors(
    connection: Connection, destination: str, rows: Sequence[RowMapping]
) -> Sequence[RowMapping]:
    subjects = sorted({subject for row in rows for subject in row["related"]})
    if not subjects:
        return ()
    asked = {"at_destination": destination, "subjects": subjects}
    return connection.execute(SELECT_PREDECESSORS, asked).mappings().all()


def _recheck_at(row: RowMapping, now: datetime) -> datetime:
    """Return when to check again for the earlier delivery: not before its next attempt."""
    due_at: datetime = row["due_at"]
    return now + _RECHECK_DELAY if row["lease"] is not None else max(due_at, now) + _RECHECK_DELAY


def _known_objects(
    connection: Connection, destination: str, rows: Sequence[RowMapping], tenant_key: str
) -> Mapping[str, RowMapping]:
    """Return, by subject, the remote objects of the subjects that events are related to."""
    subjects = sorted({subject for row in rows for subject in row["related"]})
    if not subjects:
        return {}
    asked = {"at_destination": destination, "subjects": subjects, "at_tenant": tenant_key}
    return {row["subject"]: row for row in connection.execute(SELECT_OBJECTS, asked).mappings()}


def _load_held(connection: Connection, claims: Sequence[ClaimedDelivery]) -> dict[str, RowMapping]:
    """Return the rows of the claims whose lease is still held, by ID."""
    leases = {claimed.id: claimed.lease for claimed in claims}
    rows = connection.execute(SELECT_LEASES, {"ids": list(leases)}).mappings()
    return {row["id"]: row for row in rows if row["lease"] == leases[row["id"]]}


def _extend(
    connection: Connection, claims: Sequence[ClaimedDelivery], now: datetime
) -> list[ClaimedDelivery]:
    held = _load_held(connection, claims)
    if held:
        until = {"leased_until": now + LEASE_DURATION, "beginning_by": now + HEARTBEAT}
        connection.execute(EXTEND, {"ids": list(held), **until})
    return [claimed for claimed in claims if claimed.id not in held]


def _release(
    connection: Connection, claims: Sequence[ClaimedDelivery], now: datetime, *, begun: bool
) -> None:
    held = _load_held(connection, claims)
    if held:
        statement = RELEASE_BEGUN if begun else RELEASE
        connection.execute(statement, {"ids": list(held), "to_due_at": now})


def _find_gone(connection: Connection, holder: int) -> frozenset[int]:
    """Return the numbers of other nodes that hold leases but are gone."""
    others = (
        select(deliveries.c.holder)
        .where(deliveries.c.lease.is_not(None), deliveries.c.holder != holder)
        .distinct()
    )
    return frozenset(find_absent_nodes(connection, connection.scalars(others).all()))


def _take_over(connection: Connection, gone: frozenset[int], now: datetime) -> int:
    left = update(deliveries).where(deliveries.c.lease.is_not(None), deliveries.c.holder.in_(gone))
    return int(connection.execute(left.values(lease=None, holder=None, due_at=now)).rowcount)


def _settle(connection: Connection, ended: Sequence[AttemptResult]) -> list[AttemptResult]:
    """Store results of attempts, and return those that came late: their lease was lost."""
    settled = SETTLE.run(connection, [attempt.row for attempt in ended])
    return [attempt for at, attempt in enumerate(ended) if at not in settled]


def _settle_with_objects(
    connection: Connection, ended: Sequence[AttemptResult]
) -> list[AttemptResult]:
    late = _settle(connection, ended)
    lost = {attempt.claimed.identity for attempt in late}
    valid = [attempt for attempt in ended if attempt.claimed.identity not in lost]
    store_remote_objects(connection, valid)
    mark_closed_objects(connection, valid)
    return late
