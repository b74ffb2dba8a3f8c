"""Restoring a backup into an empty database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from datetime import datetime
from pathlib import Path

from sqlalchemy import URL, Connection, delete, func, insert, select

from tocsin import audit
from tocsin.delivery import ReplayState, cancel_replay, hold_pending_deliveries
from tocsin.errors import OperatorError
from tocsin.events import RESTORED, hold_unrouted_events
from tocsin.incidents import restart_documents
from tocsin.investigations import index_all_sessions
from tocsin.knowledge import restart_index
from tocsin.store import (
    Database,
    Head,
    HeadFile,
    begin_epoch,
    begin_restore,
    create_schema,
    find_rollback,
    finish_restore,
    get_newest_revision,
    has_no_schema,
    hold_lock,
    is_known_revision,
    is_sqlite,
    load_epochs,
    load_head,
    open_database,
    sqlite_file,
)
from tocsin.store.tables import (
    console_sessions,
    incident_counts,
    incidents,
    passkey_links,
    replays,
    sign_in_links,
)
from tocsin.transfer.backup import Progress, derive_digest_key, read_table
from tocsin.transfer.files import BackupKey
from tocsin.transfer.layout import TableLayout
from tocsin.transfer.manifest import Manifest
from tocsin.transfer.rows import (
    Row,
    RowWriter,
    advance_counter,
    close_cursors,
    compare_table,
    empty_table,
    suspend_triggers,
)

_FILES = ("", "-wal", "-shm")  # of a SQLite database


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What a restore has done."""

    head: Head
    """The head of the new epoch."""
    reason: str
    """Why the epoch began."""
    deliveries: int
    """Deliveries that are on hold."""
    events: int
    """Events that are on hold."""
    replays: int
    """Bulk replays that were cancelled."""
    moved_to: Path | None = None
    """Where the previous SQLite file is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """The restore of a verified backup into a database."""

    manifest: Manifest
    key: BackupKey | None
    actor: str
    head_file: HeadFile
    now: datetime
    progress: Progress
    erase: Callable[[Database], Awaitable[object]] | None = None
    """Erases again what was erased after the backup was made, before anything else reads it."""

    def store(self, connection: Connection) -> RestoreResult:
        """Store all of the backup in this transaction, and begin the new epoch.

        Raises OperatorError where the rows are not those of the backup.
        """
        begin_restore(connection)
        create_schema(connection, self.manifest.schema)
        for table in self.manifest.tables:
            empty_table(connection, table.layout)
        for table in self.manifest.tables:
            rows = read_table(self.manifest, table, self.key)
            with suspend_triggers(connection, table.layout):
                RowWriter(connection, table.layout).write(self._follow(table.layout, rows))
            advance_counter(connection, table.layout)
        for table in self.manifest.tables:
            expected = (table.rows, table.digest)
            compare_table(connection, table.layout, expected, derive_digest_key(self.key))
        close_cursors(connection)
        create_schema(connection)
        rebuild_derived(connection)
        return self._settle(connection)

    def _follow(self, layout: TableLayout, rows: Iterator[Row]) -> Iterator[Row]:
        for count, row in enumerate(rows, 1):
            self.progress(layout.name, count)
            yield row

    def _settle(self, connection: Connection) -> RestoreResult:
        """Begin the epoch, and put on hold what may have been done after the backup was made."""
        name, at = self.manifest.name, self.manifest.created_at
        known = self._find_known_head(connection)
        rollback = find_rollback(connection, known)
        reason = f"restored from the backup {name} of {at}"
        if rollback is not None:
            reason = f"{reason}: {rollback}"
        begin_epoch(connection, known, reason, self.now)
        why = (
            f"{RESTORED} {name}: it may have been delivered after {at}. "
            "To send it, run `tocsin backup release`"
        )
        for table in (console_sessions, sign_in_links, passkey_links):
            connection.execute(delete(table))
        result = RestoreResult(
            head=load_head(connection),
            reason=reason,
            deliveries=hold_pending_deliveries(connection, why, self.now),
            events=hold_unrouted_events(connection, why),
            replays=_cancel_replays(connection, self.now),
        )
        self._record(connection, result)
        return result

    def _find_known_head(self, connection: Connection) -> Head:
        """Return the highest head that is known of the database: stored, or its own."""
        stored = self.head_file.load(load_epochs(connection))
        heads = [load_head(connection), *(one.head for one in stored)]
        return max(heads, key=lambda head: (head.epoch, head.incident_number))

    def _record(self, connection: Connection, result: RestoreResult) -> None:
        held = {"deliveries": result.deliveries, "events": result.events}
        for action, target, details in (
            ("backup.restore", f"backup:{self.manifest.name}", held),
            ("epoch.begin", f"epoch:{result.head.epoch}", {"reason": result.reason}),
        ):
            audit.record_local(
                connection, self.now, self.actor, action, target=target, details=details
            )


def rebuild_derived(connection: Connection) -> None:
    """Count incidents, index the investigations, and have incidents indexed when a node starts."""
    connection.execute(delete(incident_counts))
    kinds = (incidents.c.severity, incidents.c.status)
    counted = select(*kinds, func.count()).group_by(*kinds)
    connection.execute(insert(incident_counts).from_select(list(incident_counts.c), counted))
    restart_documents(connection)
    restart_index(connection)
    index_all_sessions(connection)


def _cancel_replays(connection: Connection, now: datetime) -> int:
    running = select(replays.c.id).where(replays.c.state == ReplayState.RUNNING)
    ids: Sequence[str] = connection.scalars(running).all()
    return sum(cancel_replay(connection, id_, now) for id_ in ids)


async def restore_backup(url: URL, restore: Restore, *, replace: bool) -> RestoreResult:
    """Restore a backup into the database at `url`, all of it or nothing; raises OperatorError.

    The database must be empty. With `replace`, a SQLite file is moved aside.
    """
    if not is_known_revision(restore.manifest.schema):
        raise OperatorError(
            f"{restore.manifest.name} has the schema {restore.manifest.schema}, but this version "
            f"of Tocsin supports schemas up to {get_newest_revision()}; restore it with version "
            f"{restore.manifest.version} or newer"
        )
    if not is_sqlite(url):
        return await _restore_into(open_database(url), restore)
    file = sqlite_file(url)
    with ExitStack() as stack:
        stack.enter_context(hold_lock(file))
        if file.exists() and not replace:
            raise OperatorError(
                f"{file.resolve()} exists; to move it aside and restore the backup in its place, "
                "add --replace"
            )
        draft = stack.enter_context(_open_draft(file))
        result = await _restore_into(open_database(url.set(database=str(draft))), restore)
        moved_to = _move_aside(file, restore.now)
        draft.rename(file)
    return replace_fields(result, moved_to=moved_to)


async def _restore_into(database: Database, restore: Restore) -> RestoreResult:
    try:
        if not await has_no_schema(database):
            raise OperatorError(
                "the database is not empty; create an empty database for the backup, and set "
                "TOCSIN_DATABASE_URL to the URL of this database"
            )
        result = await database.write(restore.store)
        if restore.erase is not None:
            await restore.erase(database)
        await database.write(finish_restore)
        return result
    finally:
        await database.close()


@contextmanager
def _open_draft(file: Path) -> Iterator[Path]:
    """Give the path of a new SQLite file beside another, and remove what is left of it."""
    draft = file.with_name(f"{file.name}.restoring")
    parts = [draft.with_name(draft.name + end) for end in _FILES]
    try:
        for part in parts:
            part.unlink(missing_ok=True)
        yield draft
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _move_aside(file: Path, now: datetime) -> Path | None:
    """Give a SQLite database another name, and return it; None where there is none."""
    if not file.exists():
        return None
    moved_to = file.with_name(f"{file.name}.replaced-{now:%Y%m%dT%H%M%SZ}")
    for end in reversed(_FILES):  # the database last: without its log, it would be older
        part = file.with_name(file.name + end)
        if part.exists():
            part.rename(moved_to.with_name(moved_to.name + end))
    return moved_to
