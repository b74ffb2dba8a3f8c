"""Watch over the shapes of one provider's records while this node reads it."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import isoformat
from tocsin.incidents.drift.repository import add_samples
from tocsin.incidents.writer import IncidentWriter
from tocsin.shapes import FieldDrift
from tocsin.store import LeaseLost

SAVE_INTERVAL = timedelta(minutes=5)
"""The interval at which shapes are stored, and up to which they are lost if the process ends."""
_log = structlog.get_logger()


class DriftWatch:
    """Stores the shapes that a provider has noted, and logs when fields vanish and return."""

    def __init__(self, writer: IncidentWriter) -> None:
        self._writer = writer
        self._saved_at: datetime | None = None

    async def save(self) -> None:
        """Store the noted shapes, if the interval has passed; failures are logged."""
        now = self._writer.clock.now()
        last = self._saved_at
        if last is not None and timedelta(0) <= now - last < SAVE_INTERVAL:
            return
        samples = self._writer.provider.shapes.take()
        if not samples:
            return
        self._saved_at = now

        def add(connection: Connection) -> tuple[list[FieldDrift], list[FieldDrift]]:
            if self._writer.lease is not None:
                self._writer.lease.confirm(connection)
            contracts = self._writer.provider.record_contracts
            return add_samples(connection, self._writer.name, contracts, samples, now)

        try:
            before, after = await self._writer.database.write(add)
        except (SQLAlchemyError, OSError, LeaseLost) as away:
            _log.warning(
                "field statistics for drift detection not stored",
                provider=self._writer.name,
                reason=str(away),
            )
        else:
            self._log_changes(before, after)

    def _log_changes(self, before: list[FieldDrift], after: list[FieldDrift]) -> None:
        known, current = ({(one.kind, one.field) for one in each} for each in (before, after))
        for drift in after:
            if (drift.kind, drift.field) not in known:
                facts = {"stream": drift.kind, "field": drift.field, "expected": drift.expected}
                _log.warning(
                    "record field " + ("missing" if drift.found is None else "changed type"),
                    provider=self._writer.name,
                    **facts,
                    found=drift.found,
                    since=isoformat(drift.since),
                )
        for kind, field in sorted(known - current):
            _log.info("record field returned", provider=self._writer.name, stream=kind, field=field)
