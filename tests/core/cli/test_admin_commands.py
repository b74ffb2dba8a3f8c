"""Administering without the API, on the machine of the database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import jwt
import pytest


@pytest.fixture
def database(tocsin, tmp_path: Path) -> Path:
    tocsin("db", "upgrade")
    return tmp_path / "data" / "tocsin.db"


def rows(database: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def change(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_what_is_done_locally_stands_in_the_audit_log(tocsin, database):
    tocsin("admin", "token", "--name", "ana")
    tocsin("admin", "sign-in-link", "--name", "ben")
    tocsin("admin", "revoke-all")
    tocsin("admin", "rotate-signing-keys")
    found = rows(database, "SELECT action, target, address FROM audit ORDER BY id")
    assert found == [
        ("admin.issue-token", "admin:ana", "local"),
        ("admin.issue-sign-in-link", "admin:ben", "local"),
        ("admin.revoke-all", None, "local"),
        ("signing-keys.rotate", None, "local"),
    ]


def test_a_refused_command_leaves_no_entry(tocsin, database):
    for command, lifetime in (("token", "400d"), ("sign-in-link", "61m")):
        status, _, _ = tocsin("admin", command, "--expires-in", lifetime)
        assert status == 2
    assert rows(database, "SELECT * FROM audit") == []


def test_a_sign_in_link_is_printed_alone_and_stored_as_a_hash(tocsin, database):
    status, link, errors = tocsin("admin", "sign-in-link", "--name", "ana", "--expires-in", "5m")
    assert (status, errors) == (0, "")
    url, _, code = link.strip().partition("#")
    assert url == "http://127.0.0.1:8080/sign-in/link"
    [(digest, name)] = rows(database, "SELECT digest, name FROM sign_in_links")
    assert (digest, name) == (sha256(code.encode()).hexdigest(), "ana")


def test_after_revoking_all_the_next_token_is_signed_anew(tocsin, database):
    before = jwt.get_unverified_header(tocsin("admin", "token")[1].strip())
    assert tocsin("admin", "revoke-all") == (0, "", "")
    assert rows(database, "SELECT * FROM signing_keys WHERE purpose = 'admin'") == []
    after = jwt.get_unverified_header(tocsin("admin", "token")[1].strip())
    assert before["kid"] != after["kid"]


def test_rotating_the_signing_keys_leaves_one_new_key(tocsin, database):
    query = "SELECT id FROM signing_keys WHERE purpose = 'access'"
    tocsin("admin", "rotate-signing-keys")
    [first] = rows(database, query)
    tocsin("admin", "rotate-signing-keys")
    [second] = rows(database, query)
    assert first != second


def test_verifying_without_the_key_makes_none(tocsin, database):
    status, _, errors = tocsin("audit", "verify")
    assert status == 2
    assert "no encryption key at" in errors
    assert not (database.parent / "encryption.key").exists()


SEALED = "UPDATE audit SET position = 1, seal = '" + "0" * 64 + "' WHERE id = 1"


def test_an_audit_log_that_is_not_sealed_yet_has_no_problem(tocsin, database):
    tocsin("admin", "token")
    status, out, errors = tocsin("audit", "verify", "--json")
    assert (status, errors) == (0, "")
    [found] = json.loads(out)
    assert found == {"entries": 0, "unsealed": 1, "head": None, "problems": []}


def test_a_forged_seal_ends_with_1_and_is_named(tocsin, database):
    tocsin("admin", "token")
    change(database, SEALED, "UPDATE sequences SET value = 1 WHERE name = 'audit_position'")
    status, out, errors = tocsin("audit", "verify")
    assert status == 1
    assert out.endswith("\t1\n")
    assert "position 1 (row 1)" in errors


def test_a_head_that_is_gone_is_a_problem(tocsin, database):
    tocsin("admin", "token")
    status, _, errors = tocsin("audit", "verify", "--head", f"7:{'a' * 64}")
    assert status == 1
    assert "position 7" in errors


@pytest.mark.parametrize("head", ["7", "x:y", f"0:{'a' * 64}", f"7:{'A' * 64}"])
def test_a_head_that_is_none_is_refused(tocsin, database, head):
    status, _, errors = tocsin("audit", "verify", "--head", head)
    assert status == 2
    assert "tocsin audit verify" in errors
