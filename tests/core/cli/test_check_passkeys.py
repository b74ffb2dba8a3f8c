"""`tocsin check` warns of a base URL at which browsers refuse passkeys."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from passkey_rows import add_passkey
from tocsin.credentials import find_passkey_fault


@pytest.fixture
def check(tocsin, on_database, tmp_path: Path):
    """Run the check at this base URL, and return its warnings."""
    (tmp_path / "plugins.toml").touch()

    async def check(base_url: str) -> str:
        status, _, errors = await asyncio.to_thread(
            tocsin, "check", TOCSIN_BASE_URL=base_url, TOCSIN_PORT="18471"
        )
        assert status == 0
        return errors

    return check


async def test_a_base_url_without_passkeys_is_a_warning_while_there_are_people(check, on_database):
    assert await check("http://tocsin.example.org") == ""
    on_database(add_passkey, datetime.now(UTC))
    warning = await check("http://tocsin.example.org")
    assert warning.startswith(
        "TOCSIN_BASE_URL: warning: Passkeys do not work at http://tocsin.example.org, which is not "
        "encrypted. Set TOCSIN_BASE_URL to an https:// URL with a host name, or to http://localhost:18471"
    )
    assert await check("https://tocsin.example.org") == ""


@pytest.mark.parametrize(
    ("base_url", "fault"),
    [
        ("https://tocsin.example.org", None),
        ("https://tocsin.example.org:8443/console", None),
        ("http://localhost:8080", None),
        ("http://soc.localhost", None),
        ("http://tocsin.example.org", "which is not encrypted"),
        ("http://notlocalhost", "which is not encrypted"),
        ("https://192.0.2.1", "which has no host name"),
        ("https://[2001:db8::1]:8443", "which has no host name"),
        ("http://127.0.0.1:8080", "or to http://localhost:18471 for this machine only"),
        ("http://tocsin.example.org", "or to http://localhost:18471 for this machine only"),
    ],
)
def test_browsers_use_passkeys_at_names_in_secure_contexts(base_url, fault):
    found = find_passkey_fault(base_url, port=18471)
    assert found is None if fault is None else fault in found
