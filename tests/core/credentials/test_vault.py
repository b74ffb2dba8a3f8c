"""The encryption key: where it comes from, and what is said where it is wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.fernet import Fernet

from tocsin.credentials import open_vault
from tocsin.errors import OperatorError
from tocsin.settings import Settings, load_settings

POSTGRES = "postgresql://tocsin@db.example/tocsin"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch) -> None:
    for name in ("DATABASE_URL", "ENCRYPTION_KEY", "ENCRYPTION_KEY_FILE", "DATA_DIR"):
        monkeypatch.delenv(f"TOCSIN_{name}", raising=False)


def test_beside_sqlite_a_key_is_generated_once_for_its_owner_alone(tmp_path):
    settings = Settings(data_dir=tmp_path / "data")
    stored = open_vault(settings).encrypt(b"secret")
    path = tmp_path / "data" / "encryption.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert open_vault(settings).decrypt(stored) == b"secret"
    assert [file.name for file in path.parent.iterdir()] == ["encryption.key"]


def test_those_who_start_at_once_get_the_same_key(tmp_path):
    settings = Settings(data_dir=tmp_path)
    with ThreadPoolExecutor(8) as threads:
        vaults = list(threads.map(lambda _: open_vault(settings), range(32)))
    stored = vaults[0].encrypt(b"secret")
    assert all(vault.decrypt(stored) == b"secret" for vault in vaults)


def test_postgresql_needs_a_key_and_says_how_to_make_one():
    with pytest.raises(
        OperatorError, match=r"TOCSIN_ENCRYPTION_KEY.*generate a key with: python3 -c"
    ):
        open_vault(Settings(database_url=POSTGRES))


def test_a_key_can_come_from_the_setting_or_from_a_file(tmp_path, monkeypatch):
    key = Fernet.generate_key().decode()
    file = tmp_path / "key"
    file.write_text(key + "\n")
    one = open_vault(Settings(database_url=POSTGRES, encryption_key=key))
    monkeypatch.setenv("TOCSIN_ENCRYPTION_KEY_FILE", str(file))
    other = open_vault(load_settings())
    assert other.decrypt(one.encrypt(b"secret")) == b"secret"


@pytest.mark.parametrize("key", ["short", "é" * 44, "=" * 44, "!" * 44, "A" * 43])
def test_a_malformed_key_is_named_and_not_shown(key):
    with pytest.raises(
        OperatorError, match=r"^TOCSIN_ENCRYPTION_KEY: found an invalid encryption key"
    ) as error:
        open_vault(Settings(encryption_key=key))
    assert key not in str(error.value)


def test_a_malformed_key_in_a_file_is_named_by_its_file(tmp_path, monkeypatch):
    file = tmp_path / "key"
    file.write_text("not a key")
    monkeypatch.setenv("TOCSIN_ENCRYPTION_KEY_FILE", str(file))
    with pytest.raises(OperatorError, match=rf"^TOCSIN_ENCRYPTION_KEY_FILE \({file}\): found an"):
        open_vault(load_settings())


def test_another_key_does_not_decrypt_and_it_says_so(tmp_path):
    stored = open_vault(Settings(data_dir=tmp_path / "one")).encrypt(b"secret")
    with pytest.raises(OperatorError, match="does not match the database"):
        open_vault(Settings(data_dir=tmp_path / "two")).decrypt(stored)
