"""`tocsin backup`: create, verify, list and restore backups."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Connection

from tocsin.cli.database import record, run_on_database, whoami
from tocsin.cli.output import (
    AsJson,
    Columns,
    Wide,
    print_json,
    print_progress,
    print_record,
    print_records,
    print_text,
)
from tocsin.clock import SystemClock
from tocsin.credentials import open_proven_vault, open_vault
from tocsin.errors import OperatorError
from tocsin.logs import configure_logs
from tocsin.settings import Settings, load_settings
from tocsin.store import Database, HeadFile, identify_location, parse_url

app = typer.Typer(no_args_is_help=True, help="Create, verify and restore backups.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name or path of the backup.")]
_COLUMNS = Columns(
    ("name", "created_at", "incident", "rows", "bytes", "encrypted", "schema", "path"),
    brief=("name", "created_at", "incident", "rows", "bytes", "encrypted"),
)
_CREATED = (*_COLUMNS.every, "removed")
_PROGRESS_ROWS = 5_000


def _get_folder(settings: Settings) -> Path:
    return settings.backup_dir or settings.data_dir / "backups"


def _load_secret(settings: Settings) -> bytes | None:
    from tocsin.transfer import load_key

    return None if settings.backup_key_file is None else load_key(settings.backup_key_file)


def show_progress(table: str, rows: int) -> None:
    """Show the number of completed rows of a table on a terminal."""
    if rows % _PROGRESS_ROWS == 0:
        print_progress(f"{table}: {rows:,} rows".ljust(50))


def _end_progress() -> None:
    print_progress("".ljust(50), end="\r")


@app.command()
def create(
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many backups of this database to keep, including the new backup. Older "
            "backups are removed. Default: keep all.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a consistent backup of the database.

    The service can keep running. Writes the backup to TOCSIN_BACKUP_DIR or, if this variable is not
    set, to `backups` in TOCSIN_DATA_DIR. Encrypts the backup if TOCSIN_BACKUP_KEY_FILE is set. The
    backup does not contain the database's encryption key, so keep a copy of this key somewhere
    else.
    """
    from tocsin.transfer import BackupMaker, Manifest, remove_old

    settings = load_settings()
    folder, secret = _get_folder(settings), _load_secret(settings)

    async def work(database: Database) -> Manifest:
        maker = BackupMaker(folder, await open_proven_vault(settings, database), secret)
        now = SystemClock().now()
        made = await maker.create(database, now, show_progress)
        await database.write(_record_backup, now, made.name)
        return made

    made = run_on_database(settings, work)
    _end_progress()
    removed = remove_old(folder, made.database_id, keep) if keep is not None else []
    print_record(_represent(made) | {"removed": len(removed)}, _CREATED, as_json=as_json)


def _record_backup(connection: Connection, now: datetime, name: str) -> None:
    record(connection, now, "backup.create", target=f"backup:{name}")


def _represent(manifest: Any) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "created_at": manifest.created_at,
        "incident": manifest.head.incident_number,
        "rows": manifest.rows,
        "bytes": manifest.size,
        "encrypted": manifest.salt is not None,
        "schema": manifest.schema,
        "path": str(manifest.folder.resolve()),
    }


@app.command("list")
def list_all(as_json: AsJson = False, wide: Wide = False) -> None:
    """List the complete backups, oldest first."""
    from tocsin.transfer import list_backups

    backups = list_backups(_get_folder(load_settings()))
    records = [_represent(backup) for backup in backups]
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def verify(name: Name, as_json: AsJson = False) -> None:
    """Verify that a backup is intact and can be restored.

    Compares the backup with its checksums. Also checks that the configured encryption key matches
    the database in the backup.

    Exit status: 0 if the backup can be restored; 2 if it is damaged or a key does not match.
    """
    from tocsin.transfer import check_vault, find_backup, verify_backup

    settings = load_settings()
    found = find_backup(_get_folder(settings), name)
    verify_backup(found, _load_secret(settings), show_progress)
    _end_progress()
    check_vault(found, open_vault(settings, generate=False))
    if as_json:
        print_json({"name": found.name, "tables": len(found.tables), "rows": found.rows})
        return
    print_text(
        f"{found.name}: {len(found.tables)} tables with {found.rows} rows match their checksums, "
        "and the encryption key matches"
    )


@app.command()
def restore(
    name: Name,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Keep an existing SQLite file as NAME.replaced-TIME and restore to a new file. "
            "Without this option, the command fails if the file exists.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty database and begin a new epoch.

    Stop all nodes first. Verifies the backup before changing anything. Puts pending deliveries and
    events on hold, because they might have been delivered after the backup was created. To send
    them, run `tocsin backup release`.
    """
    from tocsin.erasure import Eraser
    from tocsin.transfer import Restore, check_vault, find_backup, restore_backup, verify_backup

    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)
    url = parse_url(settings.database)
    manifest = find_backup(_get_folder(settings), name)
    secret = _load_secret(settings)
    vault = open_vault(settings, generate=False)
    check_vault(manifest, vault)
    verify_backup(manifest, secret, show_progress)

    erased: dict[str, int] = {}

    async def erase(database: Database) -> None:
        proven = await open_proven_vault(settings, database)
        eraser = Eraser(database, proven, SystemClock(), settings.data_dir, archive=None)
        erased.update(await eraser.reapply())

    wanted = Restore(
        manifest=manifest,
        key=manifest.open_key(secret),
        actor=whoami(),
        head_file=HeadFile(settings.data_dir, identify_location(url)),
        now=SystemClock().now(),
        progress=show_progress,
        erase=erase,
    )
    done = asyncio.run(
        restore_backup(parse_url(settings.session_database), wanted, replace=replace)
    )
    _end_progress()
    if as_json:
        print_json(
            {
                "rows": manifest.rows,
                "epoch": done.head.epoch,
                "reason": done.reason,
                "erased": erased,
                "moved_to": done.moved_to and str(done.moved_to.resolve()),
                "cancelled_replays": done.replays,
                "deliveries_on_hold": done.deliveries,
                "events_on_hold": done.events,
            }
        )
        return
    for place, count in erased.items():
        print_text(f"rows erased again in {place}: {count}")
    print_text(f"restored {manifest.rows} rows, and began epoch {done.head.epoch}: {done.reason}")
    if done.moved_to is not None:
        print_text(f"the previous database is at {done.moved_to.resolve()}")
    if done.replays:
        print_text(f"bulk replays cancelled: {done.replays}")
    if done.deliveries or done.events:
        print_text(
            f"deliveries on hold: {done.deliveries}, events on hold: {done.events}; to send them, "
            "run `tocsin backup release`"
        )


@app.command()
def release(
    destination: Annotated[
        str | None,
        typer.Option(
            help="Send only deliveries to this destination. All other deliveries, and all events, "
            "stay on hold."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send the deliveries and events that a restore put on hold.

    Prints how many deliveries and how many events were released.
    """
    deliveries, events = run_on_database(
        load_settings(), lambda database: database.write(_release, destination)
    )
    if as_json:
        print_json({"deliveries": deliveries, "events": events})
    else:
        print_text(f"released deliveries: {deliveries}, released events: {events}")


def _release(connection: Connection, destination: str | None) -> tuple[int, int]:
    from tocsin.delivery import (
        NoSuchDestinationError,
        release_restored_deliveries,
        require_destination,
    )
    from tocsin.events import release_restored_events

    now = SystemClock().now()
    if destination is not None:
        try:
            require_destination(connection, destination)
        except NoSuchDestinationError as error:
            raise OperatorError(f"--destination: {error}") from None
    deliveries = release_restored_deliveries(connection, destination, now)
    events = release_restored_events(connection) if destination is None else 0
    details = {"destination": destination, "deliveries": deliveries, "events": events}
    record(connection, now, "backup.release", details=details)
    return deliveries, events
