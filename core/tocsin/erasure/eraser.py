"""Erasure of a value: the tombstone first, then everything that is stored, then the receipt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Connection, exists, select, update

from tocsin.audit import SEAL, AuditRecord, Sealer, record, redact_entries
from tocsin.clock import Clock, isoformat, isoformat_or_none
from tocsin.credentials import Vault
from tocsin.delivery import DELIVERED
from tocsin.erasure.archives import erase_file, list_archives
from tocsin.erasure.pseudonyms import build_pseudonym
from tocsin.erasure.rows import (
    Found,
    erase_batch,
    erase_steps,
    find_configuration,
    find_needle,
    list_tables,
    merge_index,
)
from tocsin.erasure.tombstones import TombstoneFile
from tocsin.errors import InvalidInputError
from tocsin.identifiers import new_id
from tocsin.model import Entity, EntityKind
from tocsin.store import (
    ERASURE_KEY,
    Database,
    Erasure,
    Redactor,
    build_insert,
    digest_value,
    load_erasures,
)
from tocsin.store.tables import (
    attempts,
    deliveries,
    entities,
    entity_providers,
    erasures,
    events,
    write_backs,
)

ERASURE_PURPOSE = "erasure"
"""The purpose for which the key of the digests is derived."""
_log = structlog.get_logger()


MIN_LENGTH = 3
"""Shorter values are in too many texts by chance."""


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What to erase, and who asked for it."""

    entity: Entity
    by: str
    address: str
    request_id: str = ""
    dry_run: bool = False


class Eraser:
    """Erases values from a database and its archive."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        clock: Clock,
        data_dir: Path,
        archive: Path | None,
    ) -> None:
        """Take the folder that remembers digests of erased values beyond the database."""
        self._database = database
        self._file = TombstoneFile(data_dir)
        self._archive = archive
        # by which the database redacts what is stored from now on
        self._key = database.keys[ERASURE_KEY] = vault.derive(ERASURE_PURPOSE)
        self._audit_key = vault.derive(SEAL)
        self._clock = clock

    async def erase(self, request: ErasureRequest) -> dict[str, Any]:
        """Erase a value, and return the receipt; with `dry_run`, only count what would change."""
        value = request.entity.value
        digest = digest_value(self._key, value)
        pseudonym = build_pseudonym(request.entity.kind, digest)
        erasure = Erasure(request.entity.kind.value, digest, len(value), pseudonym)
        redactor, needle = Redactor(self._key, [erasure]), find_needle(value) or None
        now = self._clock.now()
        sent = await self._database.read(_list_sent, redactor)
        if not request.dry_run:
            await self._database.write(_remember, [erasure], request.by, now)
            self._file.add([erasure])
        found = await self._walk(redactor, needle, dry_run=request.dry_run)
        receipt = {
            "kind": erasure.kind,
            "pseudonym": pseudonym,
            "at": isoformat(now),
            "by": request.by,
            "dry_run": request.dry_run,
            "erased": dict(found.rows),
            "active_investigations": found.active_sessions,
            "configuration": found.configuration,
            "sent": sent,
        }
        if not request.dry_run:
            await self._database.write(self._finish, request, erasure, redactor.redact(receipt))
            await Sealer(self._database, self._audit_key, self._clock).seal()
        return receipt

    def _finish(
        self,
        connection: Connection,
        request: ErasureRequest,
        erasure: Erasure,
        receipt: dict[str, Any],
    ) -> None:
        is_it = erasures.c.digest == erasure.digest
        connection.execute(update(erasures).where(is_it).values(receipt=receipt))
        entry = AuditRecord(
            at=self._clock.now(),
            actor=request.by,
            action="entity.erase",
            target=f"{erasure.kind}:{erasure.pseudonym}",
            address=request.address,
            request_id=request.request_id,
            details={"erased": receipt["erased"], "sent": len(receipt["sent"])},
        )
        record(connection, entry)

    async def reapply(self) -> dict[str, int]:
        """Erase everything again that was ever erased, and return the number of rows by table.

        To be called after an older backup was restored.
        """
        erased = {each.digest: each for each in await self._database.read(load_erasures)}
        erased |= self._file.load()
        if not erased:
            return {}
        await self._database.write(_remember, list(erased.values()), "restore", self._clock.now())
        redactor = Redactor(self._key, erased.values())
        return dict((await self._walk(redactor, None, dry_run=False)).rows)

    async def _walk(self, redactor: Redactor, needle: str | None, *, dry_run: bool) -> Found:
        found = Found()
        # Entities again at the end, since the indexer may have stored what it had read before
        again = () if dry_run else (entities, entity_providers)
        for table in (*list_tables(), *again):
            after: Any = None
            while True:
                count, after = await self._database.write_behind(
                    erase_batch,
                    table,
                    redactor,
                    needle=needle,
                    after=after,
                    now=self._clock.now(),
                    dry_run=dry_run,
                )
                _count(found, table.name, count)
                if after is None:
                    break
        await self._walk_steps(redactor, found, dry_run=dry_run)
        await self._walk_audit(redactor, found, dry_run=dry_run)
        for path in list_archives(self._archive):
            lines = await self._database.write_behind(erase_file, path, redactor, dry_run=dry_run)
            _count(found, f"archive {path.name}", lines)
        found.configuration = await self._database.read(
            lambda connection: list(find_configuration(connection, redactor, needle))
        )
        while not dry_run and await self._database.write_behind(merge_index):
            pass
        return found

    async def _walk_steps(self, redactor: Redactor, found: Found, *, dry_run: bool) -> None:
        after: str | None = ""
        while after is not None:
            steps, active, after = await self._database.write_behind(
                erase_steps, redactor, after, dry_run=dry_run
            )
            _count(found, "session_steps", steps)
            found.active_sessions += active

    async def _walk_audit(self, redactor: Redactor, found: Found, *, dry_run: bool) -> None:
        if not dry_run:
            await Sealer(self._database, self._audit_key, self._clock).seal()
        position: int | None = 0
        while position is not None:
            count, position = await self._database.write_behind(
                redact_entries, self._audit_key, redactor.redact, position, dry_run=dry_run
            )
            _count(found, "audit", count)


def parse_entity(text: str) -> Entity:
    """Return the entity that a text such as `user:j.doe` names; raises InvalidInputError."""
    kind, _, value = text.partition(":")
    known = {each.value: each for each in EntityKind}
    if kind not in known or len(value.strip()) < MIN_LENGTH:
        raise InvalidInputError(
            f"Found {text!r}; use KIND:VALUE, with a value of {MIN_LENGTH} characters or more and "
            f"one of these kinds: {', '.join(known)}."
        )
    return Entity(known[kind], value.strip())


def _count(found: Found, name: str, count: int) -> None:
    if count:
        found.rows[str(name)] += count


def _remember(connection: Connection, erased: list[Erasure], by: str, now: datetime) -> None:
    """Store tombstones: from this transaction on, the values are erased from all that is stored."""
    statement = build_insert(connection, erasures).on_conflict_do_nothing(index_elements=["digest"])
    rows = [
        {**asdict(each), "id": new_id("ers"), "created_at": now, "created_by": by, "receipt": {}}
        for each in erased
    ]
    connection.execute(statement, rows)


def _list_sent(connection: Connection, redactor: Redactor) -> list[dict[str, Any]]:
    """Return the deliveries and comments by which the value has left this system."""
    return [*_list_deliveries(connection, redactor), *_list_comments(connection, redactor)]


def _list_deliveries(connection: Connection, redactor: Redactor) -> Iterator[dict[str, Any]]:
    tried = exists().where(attempts.c.delivery_id == deliveries.c.id)
    columns = [deliveries.c[name] for name in ("id", "destination", "state", "subject", "event_id")]
    columns += [deliveries.c.remote_id, deliveries.c.remote_url, deliveries.c.finished_at]
    query = select(*columns, events.c.data, events.c.context).join(
        events, events.c.id == deliveries.c.event_id
    )
    for row in connection.execute(query.where(tried).order_by(deliveries.c.id)).mappings():
        content = (row["data"], row["context"])
        if redactor.redact(content) is not content:
            names = ("destination", "subject", "event_id", "remote_id", "remote_url")
            yield {
                "delivery_id": row["id"],
                **{name: row[name] for name in names},
                "outcome": "delivered" if row["state"] == DELIVERED else "attempted",
                "at": isoformat_or_none(row["finished_at"]),
            }


def _list_comments(connection: Connection, redactor: Redactor) -> Iterator[dict[str, Any]]:
    query = select(write_backs).where(write_backs.c.attempts > 0)
    for row in connection.execute(query).mappings():
        if redactor.redact_text(row["text"]) is not row["text"]:
            yield {
                "delivery_id": None,
                "destination": f"provider:{row['provider']}",
                "subject": f"incident:{row['incident_number']}",
                "event_id": None,
                "remote_id": row["external_id"],
                "remote_url": None,
                "outcome": row["state"],
                "at": isoformat_or_none(row["finished_at"]),
            }
