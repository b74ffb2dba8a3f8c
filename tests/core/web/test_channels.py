"""What destinations can be made of, over HTTP."""

from __future__ import annotations

import pytest

from api_server import problem
from tocsin.credentials import Scope
from tocsin.web.schemas.plugins import ChannelList

CHANNELS = "/api/admin/channels"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def settings(admin) -> dict[str, dict]:
    """What a webhook can be told, by name."""
    listed = await admin.read(CHANNELS)
    ChannelList.model_validate(listed)
    [channel] = listed["channels"]
    assert (channel["plugin"], listed["total"]) == ("webhook", 1)
    return {setting["name"]: setting for setting in channel["settings"]}


@on_sqlite
async def test_what_is_told_of_a_setting_is_what_a_form_needs(settings):
    shown = {name: (setting["shape"], setting["choices"]) for name, setting in settings.items()}
    assert shown["url"] == ("text", [])
    assert shown["min_severity"][0] == "choice"
    assert "Critical" in shown["min_severity"][1]
    assert shown["events"][0] == "choices"
    assert "envelope" in shown["template"][1]
    assert shown["retry_schedule"] == ("list", [])
    assert shown["headers"] == ("table", [])
    assert "plugin" not in shown


@on_sqlite
async def test_secrets_and_what_only_the_file_can_set_are_told_apart(settings):
    secret = {name for name, setting in settings.items() if setting["secret"]}
    local = {name for name, setting in settings.items() if setting["local"]}
    assert {"secret", "headers", "secret_url"} <= secret
    assert local == {"ca_file", "client_certificate", "client_key", "proxy"}
    assert next(iter(settings)) == "url"  # its own come first
    assert settings["events"]["common"]


@on_sqlite
async def test_only_admins_are_told(api):
    headers = {"X-API-Key": await api.key(*Scope)}
    await problem(await api.client.get(CHANNELS, headers=headers), 403)
