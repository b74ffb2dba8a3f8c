"""Reading which plugins there are over HTTP."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api_callers import Admin
from api_server import CONFIGURATION, open_api, problem
from tocsin.credentials import Scope
from tocsin.registry import PluginInventory, PluginsFile, installed_plugins
from tocsin.registry.entry_points import ON_BY_DEFAULT
from tocsin.registry.loader import AbsentPlugin, PluginOffers
from tocsin.web.schemas.plugins import PluginDetail, PluginList
from tocsin_plugins.webhook import Webhook

PLUGINS = "/api/admin/plugins"

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_every_installed_plugin_is_listed_by_name_with_its_state(admin):
    page = await admin.read(PLUGINS)
    PluginList.model_validate(page)
    names = [plugin["name"] for plugin in page["plugins"]]
    assert names == sorted({plugin.name for plugin in installed_plugins()})
    states = {plugin["name"]: plugin["state"] for plugin in page["plugins"]}
    assert states.pop("webhook") == "loaded"
    assert set(states.values()) == {"not-enabled"}


async def test_what_is_not_enabled_says_how_to_enable_it_and_no_more(admin):
    found = await admin.read(f"{PLUGINS}/suricata")
    PluginDetail.model_validate(found)
    assert found["absent"] == (
        'it is not enabled; to enable it, set `enabled = ["webhook", "suricata"]` in plugins.toml'
    )
    assert (found["hooks"], found["kinds"], found["offers"]) == ([], [], [])


async def test_what_is_loaded_tells_what_it_offers_and_takes(admin):
    found = await admin.read(f"{PLUGINS}/webhook")
    PluginDetail.model_validate(found)
    assert found["hooks"] == ["tocsin_channels"]
    [kind] = found["kinds"]
    assert (kind["section"], kind["name"]) == ("destinations", "Webhook")
    told = {item["name"]: item for item in kind["settings"]}
    assert told["secret"]["secret"]
    assert told["events"]["common"]


async def test_what_is_broken_says_why_and_which_tables_go_without(database, clock):
    file = PluginsFile(
        enabled=("webhook", "slack"),
        disabled=tuple(ON_BY_DEFAULT),
        destinations={"soar": {"plugin": "webhook"}, "chat": {"plugin": "slack"}},
    )
    offers = PluginOffers(
        channels={"webhook": Webhook},
        hooks={"webhook": ("tocsin_channels",)},
        absent={"slack": AbsentPlugin("slack", "could not be imported: ImportError('x')")},
    )
    inventory = PluginInventory(file, installed_plugins(), offers)
    left_out = [AbsentPlugin("destinations.chat", "the plugin 'slack' is absent")]
    changed = replace(CONFIGURATION, inventory=inventory, absent=left_out)
    async with open_api(database, clock, changed) as api:
        found = (await Admin(api, await api.admin()).read(PLUGINS))["plugins"]
    told = {item["name"]: item for item in found}
    assert told["slack"]["state"] == "absent"
    assert "could not be imported" in told["slack"]["absent"]
    assert told["slack"]["used_by"] == [
        {"table": "destinations.chat", "absent": "the plugin 'slack' is absent"}
    ]
    assert told["webhook"]["used_by"] == [{"table": "destinations.soar", "absent": None}]


async def test_a_plugin_is_degraded_while_one_of_its_tables_is(database, clock):
    file = PluginsFile(enabled=("webhook",), destinations={"soar": {"plugin": "webhook"}})
    offers = PluginOffers(channels={"webhook": Webhook}, hooks={"webhook": ("tocsin_channels",)})
    changed = replace(CONFIGURATION, inventory=PluginInventory(file, installed_plugins(), offers))
    async with open_api(database, clock, changed) as api:
        api.services.node.degraded = {"destinations.soar": "too slow", "providers.edge": "other"}
        found = await Admin(api, await api.admin()).read(f"{PLUGINS}/webhook")
    assert (found["state"], found["degraded"]) == ("degraded", "destinations.soar: too slow")


async def test_a_plugin_that_is_not_installed_is_unknown(admin):
    assert "no plugin" in (await problem(await admin.send("GET", f"{PLUGINS}/x"), 404))["detail"]


async def test_only_admins_read_it(api):
    headers = {"X-API-Key": await api.key(*Scope)}
    for path in (PLUGINS, f"{PLUGINS}/webhook"):
        await problem(await api.client.get(path), 401)
        await problem(await api.client.get(path, headers=headers), 403)
