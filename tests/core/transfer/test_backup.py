"""A backup holds one moment of a database, and brings it back as a new epoch."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import URL, select

from delivery_rows import rows
from incident_rows import add_incidents
from tocsin import audit
from tocsin.credentials import Vault
from tocsin.delivery import release_restored_deliveries, requeue_on_hold
from tocsin.erasure import Eraser, ErasureRequest
from tocsin.errors import OperatorError
from tocsin.events import release_restored_events, retry_routing
from tocsin.model import Entity, EntityKind
from tocsin.store import JUMP, HeadFile, check_schema, load_epochs, load_head
from tocsin.store.tables import events, incident_counts, incident_entities, incidents
from tocsin.transfer import (
    BackupMaker,
    Restore,
    files,
    find_backup,
    list_backups,
    remove_old,
    restore_backup,
    verify_backup,
)
from tocsin.transfer.backup import read_table

from .conftest import NOW, count_rows, fill, opened

VAULT = Vault("A" * 43 + "=", source="a test")


def quietly(_table: str, _rows: int) -> None:
    """Show no progress."""


def make_restore(manifest, folder: Path, key=None) -> Restore:
    return Restore(
        manifest=manifest,
        key=key,
        actor="ana",
        head_file=HeadFile(folder, "somewhere"),
        now=NOW,
        progress=quietly,
    )


async def test_a_restored_database_has_every_row_and_holds_what_was_pending(
    database, tmp_path, target_url
):
    await database.write(fill)
    sealer = audit.Sealer(database, b"key", SimpleNamespace(now=lambda: NOW))
    await sealer.seal()
    made = await BackupMaker(tmp_path / "backups", VAULT).create(database, NOW, quietly)
    before = await database.read(count_rows)
    assert {table.layout.name: table.rows for table in made.tables} == before
    await database.write(add_incidents, 2)  # which the backup has not
    HeadFile(tmp_path, "somewhere").save(
        await database.read(load_head), await database.read(load_epochs), NOW
    )
    result = await restore_backup(target_url, make_restore(made, tmp_path), replace=False)
    assert (result.deliveries, result.events, result.head.epoch) == (1, 1, 2)
    async with opened(target_url) as restored:
        after = await restored.read(count_rows)
        assert after == before | {"audit": before["audit"] + 2, "epochs": 2}
        [first, second] = await restored.read(load_epochs)
        assert (second.found_number, second.known_number) == (3, 5)
        assert second.after == first.id
        assert "had reached incident 5" in second.reason
        [counted] = await restored.read(lambda c: c.execute(incident_counts.select()).all())
        assert tuple(counted) == ("High", "New", 3)
        verified = await restored.read(audit.verify, b"key", now=NOW)
        assert verified.problems == []
        assert await restored.write(add_incidents) == [5 + JUMP + 1]
        await check_holds(restored)


LATER = {
    "api_keys",
    "incident_alerts",
    "passkey_links",
    "passkeys",
    "people",
    "quarantine",
    "remote_objects",
    "saved_views",
    "used_challenges",
}
"""Tables that came after the partitions, or got columns since."""


async def test_a_backup_from_before_partitions_gets_them(database, tmp_path, target_url):
    await database.write(fill)
    made = await BackupMaker(tmp_path / "backups", VAULT).create(database, NOW, quietly)
    tables = [table for table in made.tables if table.layout.name not in LATER]
    older = replace(made, schema="0040", tables=tables)
    await restore_backup(target_url, make_restore(older, tmp_path), replace=False)
    async with opened(target_url) as restored:
        await check_schema(restored, is_exact=True)
        assert len(await restored.read(rows)) == 3


async def check_holds(database) -> None:
    """Fail unless what was pending waits for someone, whatever a start would send."""
    assert await database.write(requeue_on_hold, NOW) == 0
    assert await database.write(retry_routing) == 0
    states = {row["state"]: row for row in (await database.read(rows)).values()}
    assert sorted(states) == ["dead", "delivered", "on_hold"]
    assert "`tocsin backup release`" in states["on_hold"]["reason"]
    assert await database.write(release_restored_deliveries, "other", NOW) == 0
    assert await database.write(release_restored_deliveries, None, NOW) == 1
    assert await database.write(release_restored_events) == 1
    unrouted = select(events.c.routing_error).where(events.c.routed.is_(False))
    assert await database.read(lambda c: c.scalars(unrouted).all()) == [None]


async def test_what_was_erased_after_the_backup_is_erased_again(database, tmp_path, target_url):
    named = {"title": "logon of j.doe", "entities": [("user", "j.doe")]}
    await database.write(add_incidents, **named)
    made = await BackupMaker(tmp_path / "backups", VAULT).create(database, NOW, quietly)
    clock = SimpleNamespace(now=lambda: NOW)
    wanted = ErasureRequest(Entity(EntityKind.USER, "j.doe"), by="ana", address="local")
    receipt = await Eraser(database, VAULT, clock, tmp_path, None).erase(wanted)

    async def erase(restored) -> None:
        await Eraser(restored, VAULT, clock, tmp_path, None).reapply()

    restore = replace(make_restore(made, tmp_path), erase=erase)
    await restore_backup(target_url, restore, replace=False)
    async with opened(target_url) as restored:
        values = select(incidents.c.title, incident_entities.c.value).join(incident_entities)
        [found] = await restored.read(lambda c: c.execute(values).all())
        assert tuple(found) == (f"logon of {receipt['pseudonym']}", receipt["pseudonym"])
        key = VAULT.derive(audit.SEAL)
        assert (await restored.read(audit.verify, key, now=NOW)).problems == []


async def test_a_restore_that_ends_before_its_erasures_is_refused(database, tmp_path, target_url):
    """It would show what was erased, and nothing would erase it later."""
    made = await BackupMaker(tmp_path / "backups", VAULT).create(database, NOW, quietly)

    class Killed(BaseException):
        pass

    async def erase(_: object) -> None:
        raise Killed

    restore = replace(make_restore(made, tmp_path), erase=erase)
    with pytest.raises(Killed):
        await restore_backup(target_url, restore, replace=False)
    if target_url.get_backend_name() == "sqlite":
        assert not list(tmp_path.glob("target.db*"))
        return
    async with opened(target_url) as restored:
        with pytest.raises(OperatorError, match=r"unfinished restore.*empty the database"):
            await check_schema(restored)
    with pytest.raises(OperatorError, match="unfinished restore"):
        await restore_backup(target_url, make_restore(made, tmp_path), replace=False)


def make_manifest(tmp_path: Path, migrated_file: Path, secret: bytes | None = None):
    """Return a backup of a database without incidents."""

    async def make():
        async with opened(URL.create("sqlite", database=str(migrated_file))) as database:
            maker = BackupMaker(tmp_path / "backups", VAULT, secret)
            return await maker.create(database, NOW, quietly)

    return asyncio.run(make())


def test_a_damaged_backup_is_found_and_not_restored(tmp_path, migrated_file):
    made = make_manifest(tmp_path, migrated_file)
    verify_backup(made, None, quietly)
    for name, change, match in (
        ("epochs.jsonl.gz", lambda data: data[:-9], "epochs.*damaged"),
        ("epochs.jsonl.gz", lambda data: b"", "epochs.*damaged"),
        ("manifest.json", lambda data: data.replace(b'"rows": 1,', b'"rows": 2,'), "found 1 rows"),
        ("manifest.json", lambda data: data[:-9], "manifest is damaged"),
    ):
        path = made.folder / name
        before = path.read_bytes()
        path.write_bytes(change(before))
        with pytest.raises(OperatorError, match=match):
            verify_backup(find_backup(tmp_path / "backups", made.name), None, quietly)
        path.write_bytes(before)
    (made.folder / "epochs.jsonl.gz").unlink()
    with pytest.raises(OperatorError, match="epochs"):
        verify_backup(made, None, quietly)


def test_an_encrypted_backup_needs_its_key_and_notices_every_change(tmp_path, migrated_file):
    secret = bytes(range(32))
    made = make_manifest(tmp_path, migrated_file, secret)
    verify_backup(made, secret, quietly)
    path = made.folder / "epochs.jsonl.gz.aes"
    assert not path.read_bytes().startswith(b"\x1f\x8b")
    for wrong, match in ((None, "TOCSIN_BACKUP_KEY_FILE"), (bytes(32), "another key")):
        with pytest.raises(OperatorError, match=match):
            verify_backup(made, wrong, quietly)
    tables = [replace(made.tables[0], rows=7), *made.tables[1:]]
    with pytest.raises(OperatorError, match="manifest was changed"):
        verify_backup(replace(made, tables=tables), secret, quietly)
    # with the checksum adjusted, as somebody who changes files would
    *kept, last = path.read_bytes()
    path.write_bytes(bytes([*kept, last ^ 1]))
    with pytest.raises(OperatorError, match="it was changed"):
        list(read_table(made, find_table(made, "epochs"), made.open_key(secret)))


def find_table(manifest, name: str):
    return next(table for table in manifest.tables if table.layout.name == name)


def test_chunks_of_an_encrypted_file_cannot_be_removed_or_moved(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 64)
    path, key = tmp_path / "lines", files.BackupKey(bytes(32), b"salt")
    content = [secrets.token_hex(20).encode() + b"\n" for _ in range(9)]
    with files.write_lines(path, key) as lines:
        lines.writelines(content)
    with files.read_lines(path, key) as lines:
        assert list(lines) == content
    data = path.read_bytes()
    chunk = 64 + 16
    assert len(data) > 3 * chunk
    for changed in (data[chunk:], data[:chunk], data[chunk : 2 * chunk] + data[:chunk], data[:-1]):
        path.write_bytes(changed)
        with (
            pytest.raises(OperatorError, match="it was changed"),
            files.read_lines(path, key) as ls,
        ):
            list(ls)


def test_old_backups_of_the_same_database_are_removed(tmp_path, migrated_file):
    made = make_manifest(tmp_path, migrated_file)
    folder = tmp_path / "backups"
    for number in (1, 2):
        other = shutil.copytree(made.folder, folder / f"tocsin-{number}")
        stored = json.loads((other / "manifest.json").read_text())
        stored |= {"created_at": f"2026-11-2{number + 1}", "name": other.name}
        (other / "manifest.json").write_text(json.dumps(stored))
    shutil.copytree(made.folder, folder / "tocsin-0.partial")
    assert remove_old(folder, "another", 1) == []
    assert remove_old(folder, made.database_id, 2) == [made.name]
    assert [backup.name for backup in list_backups(folder)] == ["tocsin-1", "tocsin-2"]
