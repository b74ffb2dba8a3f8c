"""`tocsin backup`, as an operator runs it."""

from __future__ import annotations

import base64
import json
import os

from sqlalchemy import Connection, select

from delivery_rows import add_delivery, add_destination
from incident_rows import add_incidents
from tocsin.store.tables import audit, deliveries


def test_a_backup_is_made_listed_verified_and_restored(tocsin, tmp_path, on_database):
    (tmp_path / "key").write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    keys = {"TOCSIN_BACKUP_KEY_FILE": "key", "TOCSIN_ENCRYPTION_KEY": "A" * 43 + "="}
    on_database(add_incidents, 3)
    on_database(lose_track)
    status, out, errors = tocsin("backup", "create", "--json", "--keep", "2", **keys)
    assert status == 0, errors
    [made] = json.loads(out)
    assert (made["incident"], made["encrypted"], made["removed"]) == (3, True, 0)
    status, out, _ = tocsin("backup", "list")
    assert (status, out.split("\t")[0]) == (0, made["name"])
    status, out, errors = tocsin("backup", "verify", made["name"], **keys)
    assert status == 0, errors
    assert "match their checksums" in out
    other = keys | {"TOCSIN_ENCRYPTION_KEY": "B" * 43 + "="}
    status, _, errors = tocsin("backup", "verify", made["name"], **other)
    assert (status, "does not match this backup" in errors) == (2, True)
    status, _, errors = tocsin("backup", "restore", made["name"], **keys)
    assert (status, "--replace" in errors) == (2, True)
    assert on_database(read_states) == ["pending"]
    status, out, errors = tocsin("backup", "restore", made["name"], "--replace", **keys)
    assert status == 0, errors
    assert "deliveries on hold: 1, events on hold: 0" in out
    [aside] = (tmp_path / "data").glob("tocsin.db.replaced-*")
    assert aside.stat().st_size > 0
    assert not list((tmp_path / "data").glob("*.restoring*"))
    status, out, _ = tocsin("backup", "release", "--destination", "nobody", **keys)
    assert status == 2
    assert tocsin("backup", "release", **keys)[:2] == (
        0,
        "released deliveries: 1, released events: 0\n",
    )
    actions = ["backup.restore", "epoch.begin", "backup.release"]
    assert on_database(read_actions)[-3:] == actions


def lose_track(connection: Connection) -> None:
    add_destination(connection)
    add_delivery(connection, "pending")


def read_actions(connection: Connection) -> list[str]:
    return list(connection.scalars(select(audit.c.action).order_by(audit.c.id)))


def read_states(connection: Connection) -> list[str]:
    return list(connection.scalars(select(deliveries.c.state)))
