"""How [enrichers], [investigator] and [environment] of plugins.toml are judged and made."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from tocsin import (
    Enricher,
    Entity,
    EntityKind,
    Investigator,
    NoKnowledge,
    Provider,
    Report,
    hookimpl,
)
from tocsin.clock import SystemClock
from tocsin.errors import ConfigurationError
from tocsin.registry import InstalledPlugin, PluginFactory, load_configuration, start_plugins

ADDRESS = Entity(EntityKind.IP, "192.0.2.1")


class Silent(Enricher):
    """Knows nothing."""

    kinds = frozenset(EntityKind)

    async def enrich(self, entities):
        return ()


class Standing(Silent):
    name = "standing"
    standing = True


class Asked(Silent):
    name = "asked"

    class Settings(Enricher.Settings):
        path: str


class Thinker(Investigator):
    class Settings(Investigator.Settings):
        depth: int = 2

    async def investigate(self, inquiry, desk) -> Report:
        raise NotImplementedError


class Mute(Provider):
    async def check(self):
        raise NotImplementedError

    def read(self, stream, position, until):
        raise NotImplementedError

    def streams(self):
        return ()


@pytest.fixture
def installed(monkeypatch):
    """Install modules as plugins, with what their hooks return."""

    def install(**plugins):
        found = []
        for name, hooks in plugins.items():
            module = ModuleType(f"made_{name}")
            for hook, value in hooks.items():
                function = hookimpl(lambda value=value: value)
                function.__name__ = hook
                setattr(module, hook, function)
            monkeypatch.setitem(sys.modules, module.__name__, module)
            point = EntryPoint(name, module.__name__, "tocsin.plugins")
            found.append(InstalledPlugin(name, "tocsin.plugins", "made", "1", point))
        return found

    return install


@pytest.fixture
def offered(installed):
    return installed(
        templates={},
        enrichers={"tocsin_enrichers": [Standing, Asked]},
        investigator={"tocsin_investigators": Thinker},
        other={"tocsin_investigators": Thinker, "tocsin_providers": Mute},
    )


@pytest.fixture
def load(tmp_path, offered):
    async def load(text, plugins=None):
        path = tmp_path / "plugins.toml"
        path.write_text(text)
        return await load_configuration(path, plugins or offered)

    return load


@pytest.fixture
def problems(load):
    async def problems(text):
        with pytest.raises(ConfigurationError) as caught:
            await load(text)
        return [str(problem) for problem in caught.value.problems]

    return problems


async def test_what_stands_by_itself_is_made_without_a_word(load):
    configuration = await load("")
    assert [made.name for made in configuration.enrichers] == ["standing"]
    live = await start_plugins(configuration, PluginFactory(SystemClock()))
    assert list(live.enrichers) == ["standing"]
    assert isinstance(live.investigator, Thinker)
    await live.close()


async def test_a_table_stands_for_the_kind_that_would_stand_by_itself(load):
    configuration = await load('[enrichers.mine]\nplugin = "enrichers"\nkind = "standing"')
    assert [made.name for made in configuration.enrichers] == ["mine"]


async def test_a_kind_that_does_not_stand_by_itself_may_be_made_twice(load):
    table = '[enrichers.{0}]\nplugin = "enrichers"\nkind = "asked"\npath = "{0}"\n'
    configuration = await load(table.format("a") + table.format("b"))
    assert [made.name for made in configuration.enrichers] == ["a", "b", "standing"]


async def test_what_is_disabled_is_not_there(load):
    configuration = await load('disabled = ["enrichers", "investigator"]')
    assert configuration.enrichers == []
    assert configuration.investigator is None


async def test_a_kind_is_named_where_there_are_several(problems):
    assert await problems('[enrichers.x]\nplugin = "enrichers"') == [
        "plugins.toml: enrichers.x.kind: missing; use one of: standing, asked"
    ]


async def test_a_misspelt_kind_shows_the_nearest(problems):
    text = '[enrichers.x]\nplugin = "enrichers"\nkind = "askd"'
    assert await problems(text) == [
        "plugins.toml: enrichers.x.kind: 'enrichers' does not provide the kind 'askd'; "
        "use one of: standing, asked; did you mean 'asked'?"
    ]


async def test_a_name_that_a_standing_kind_has_is_taken(problems):
    text = '[enrichers.standing]\nplugin = "enrichers"\nkind = "asked"\npath = "x"'
    assert await problems(text) == [
        "plugins.toml: enrichers.standing: found the name 'standing', which is "
        "reserved for a kind of 'enrichers'; choose another name"
    ]


async def test_every_mistake_is_told_at_once(problems):
    text = """
    [enrichers.x]
    plugin = "enrichers"
    kind = "asked"
    [investigator]
    depth = "deep"
    [environment]
    internal_networks = ["10.0.0.0/99"]
    """
    found = await problems(text)
    assert [problem.split(": ")[1] for problem in found] == [
        "enrichers.x.path",
        "investigator.depth",
        "environment.internal_networks.0",
    ]


async def test_another_investigator_takes_the_place_of_the_default(load):
    configuration = await load('enabled = ["other"]\n[investigator]\nplugin = "other"\ndepth = 3')
    assert configuration.investigator is not None
    assert configuration.investigator.settings.depth == 3


async def test_a_provider_that_cannot_comment_is_not_told_to(problems):
    text = 'enabled = ["other"]\n[providers.x]\nplugin = "other"\nwrite_back = true'
    assert await problems(text) == [
        "plugins.toml: providers.x.write_back: 'other' cannot write comments; remove this setting"
    ]


async def test_a_provider_that_cannot_set_a_status_is_not_told_to(problems):
    text = (
        'enabled = ["other"]\n[providers.x]\nplugin = "other"\n'
        'write_back = true\nwrite_back_status = "active"'
    )
    assert await problems(text) == [
        "plugins.toml: providers.x.write_back: 'other' cannot write comments; remove this setting",
        "plugins.toml: providers.x.write_back_status: 'other' cannot set a status; "
        "remove this setting",
    ]


async def test_two_kinds_of_one_name_leave_the_later_plugin_out(load, installed):
    plugins = installed(
        templates={},
        enrichers={"tocsin_enrichers": [Standing]},
        investigator={"tocsin_investigators": Thinker},
        more={"tocsin_enrichers": [Standing]},
    )
    configuration = await load('enabled = ["more"]', plugins)
    (absent,) = configuration.absent
    assert absent.reason == (
        "imported, but another enricher has the name 'standing'; rename `Standing`"
    )


@pytest.mark.parametrize("offered_kinds", [Standing, [Thinker], [Silent], 3])
async def test_what_is_no_list_of_enrichers_is_left_out(load, installed, offered_kinds):
    plugins = installed(
        templates={},
        investigator={"tocsin_investigators": Thinker},
        enrichers={"tocsin_enrichers": offered_kinds},
    )
    configuration = await load("", plugins)
    assert [absent.name for absent in configuration.absent] == ["enrichers"]


async def test_what_is_known_is_handed_to_enrichers_alone(load):
    class Known(NoKnowledge):
        pass

    live = await start_plugins(await load(""), PluginFactory(SystemClock(), knowledge=Known()))
    assert isinstance(live.enrichers["standing"].tools.knowledge, Known)
    assert live.investigator is not None
    assert not isinstance(live.investigator.tools.knowledge, Known)
    await live.close()
