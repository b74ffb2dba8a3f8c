"""How [intake] of plugins.toml is judged and made."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from memory_intake import MemoryIntake
from tocsin import hookimpl
from tocsin.clock import SystemClock
from tocsin.errors import ConfigurationError
from tocsin.hookspecs import NoIntake
from tocsin.registry import InstalledPlugin, PluginFactory, load_configuration, start_plugins

OFF = 'disabled = ["templates", "enrichers", "investigator"]\n'


@pytest.fixture
def load(tmp_path, monkeypatch):
    module = ModuleType("made_memory")
    module.tocsin_intakes = hookimpl(lambda: MemoryIntake)
    module.tocsin_intakes.__name__ = "tocsin_intakes"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = {"memory": module.__name__, **dict.fromkeys(("templates", "enrichers", "investigator"))}
    installed = [
        InstalledPlugin(name, "tocsin.plugins", "made", "1", EntryPoint(name, value or "", ""))
        for name, value in names.items()
    ]

    async def load(text):
        path = tmp_path / "plugins.toml"
        path.write_text(OFF + text)
        return await load_configuration(path, installed)

    return load


async def test_a_table_makes_the_intake_and_none_makes_none(load):
    for text, kind in (
        ('enabled = ["memory"]\n[intake]\nplugin = "memory"', MemoryIntake),
        ("", NoIntake),
    ):
        live = await start_plugins(await load(text), PluginFactory(SystemClock()))
        assert type(live.intake) is kind
        assert list(live.find_objects("memory")) == (["intake"] if kind is MemoryIntake else [])
        await live.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('enabled = ["memory"]\n[intake]\nplugin = "memory"\nreplica = 3', "intake.replica"),
        ('[intake]\nplugin = "memory"', "not enabled"),
        ('[intake]\nservers = ["a"]', "intake.plugin: missing"),
    ],
)
async def test_a_wrong_table_is_refused(load, text, expected):
    with pytest.raises(ConfigurationError, match=expected):
        await load(text)
