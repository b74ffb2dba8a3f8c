"""What is told of a plugin: what it offers, takes and needs, and why it is absent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, SecretStr

from tocsin import Duration, Provider
from tocsin.errors import OperatorError
from tocsin.fields import Network, PluginSettings
from tocsin.registry import InstalledPlugin, PluginsFile, installed_plugins
from tocsin.registry.inventory import describe_plugin
from tocsin.registry.settings_schema import list_settings

PROVIDER = '''
from tocsin import ApiSettings, Health, Provider, WindowedProvider, hookimpl

class Acme(WindowedProvider):
    """Incidents of Acme.

    More of it.
    """
    permissions = ("cases:read",)
    async def check(self): return Health(detail="")
    async def list_changes(self, stream, window, token, limit): ...
    def to_incident(self, record): ...

@hookimpl
def tocsin_providers(): return Acme
'''


WHOLE = PROVIDER.replace(
    "    async def check", "    async def read(self): yield\n    async def check"
)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that makes an installed plugin of source text."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, source: str, distribution: str = "acme-dist") -> InstalledPlugin:
        module = f"described_{name}_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{module}.py").write_text(source)
        point = EntryPoint(name, module, "tocsin.providers")
        return InstalledPlugin(name, "tocsin.providers", distribution, "1.2", point)

    return install


async def described(*plugins: InstalledPlugin, **file):
    return await describe_plugin(plugins[0].name, PluginsFile(**file), plugins)


async def test_a_provider_is_told_with_all_that_it_is(install):
    tables = {"cloud": {"plugin": "acme"}, "other": {"plugin": "ocsf"}}
    found = await described(install("acme", PROVIDER), enabled=["acme"], providers=tables)
    [kind] = found.kinds
    assert (found.distribution, found.version, found.enabled) == ("acme-dist", "1.2", True)
    assert (found.absent, found.broken) == (None, False)
    assert (found.hooks, found.used_by) == (("tocsin_providers",), ("providers.cloud",))
    assert (kind.section, kind.name, kind.summary) == ("providers", "Acme", "Incidents of Acme.")
    assert (kind.capabilities, kind.streams) == (("backfill",), ("changed",))
    assert kind.permissions == ("cases:read",)
    assert kind.schema["required"] == ["plugin"]


async def test_streams_that_depend_on_settings_are_not_guessed(install):
    source = PROVIDER.replace(
        "permissions =", "def streams(self): return self.settings.names\n    permissions ="
    )
    [kind] = (await described(install("acme", source))).kinds
    assert kind.streams is None


async def test_one_that_is_not_enabled_is_told_with_the_line_that_enables_it(install):
    found = await described(install("acme", PROVIDER), enabled=["suricata"])
    assert found.absent == (
        'it is not enabled; to enable it, set `enabled = ["suricata", "acme"]` in plugins.toml'
    )
    assert (found.enabled, found.broken) == (False, False)
    assert [kind.name for kind in found.kinds] == ["Acme"]


async def test_one_that_is_disabled_is_told_so():
    found = await describe_plugin(
        "templates", PluginsFile(disabled=["templates"]), installed_plugins()
    )
    assert found.absent == (
        "it is disabled; to enable it, remove 'templates' from `disabled` in plugins.toml"
    )


async def test_one_that_is_not_installed_is_an_error_with_the_nearest():
    with pytest.raises(OperatorError, match=r"no plugin 'webhok'.*; did you mean 'webhook'\?"):
        await describe_plugin("webhok", PluginsFile(), installed_plugins())


async def test_of_two_with_one_name_none_is_imported(install):
    one, other = (install("acme", "raise SystemExit", name) for name in ("one", "other"))
    found = await described(one, other, enabled=["acme"])
    assert found.absent == "one and other provide a plugin of this name; uninstall one of them"
    assert (found.broken, found.hooks) == (True, ())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_of_this_name", "could not be imported: ModuleNotFoundError"),
        ("raise SystemExit(3)", "could not be imported: SystemExit"),
        ("", "it does not implement any hook; mark its hooks with `@hookimpl`"),
        ("def tocsin_providers(): ...", "it does not implement any hook"),
        (PROVIDER.replace("return Acme", "return Health"), "not a subclass of Provider"),
        (
            PROVIDER.replace("def tocsin_providers", "def tocsin_povider"),
            "imported, but 'tocsin_povider' is not a hook; did you mean 'tocsin_providers'?",
        ),
        (
            PROVIDER.replace("def tocsin_providers()", "def tocsin_providers(config)"),
            "imported, but one of its hooks does not match its",
        ),
        (
            PROVIDER.replace("return Acme", "raise OSError('no')"),
            "imported, but one of its hooks failed: OSError('no')",
        ),
        (
            WHOLE.replace("return Acme", "return Acme(None, None)"),
            "`tocsin_providers` returned an instance of Acme; return the class itself",
        ),
        (
            PROVIDER.replace(
                "permissions =", "class Settings(ApiSettings): ...\n    permissions ="
            ),
            "`Acme.Settings` does not derive from `Provider.Settings`",
        ),
        (
            PROVIDER.replace("async def check", "async def chek"),
            "is abstract, because it does not implement check",
        ),
    ],
)
async def test_one_that_cannot_be_used_is_told_why(install, source, reason):
    found = await described(install("acme", source), enabled=["acme"])
    assert reason in found.absent
    assert found.broken


async def test_every_shipped_kind_can_be_told():
    names = [plugin.name for plugin in installed_plugins()]
    found = [await describe_plugin(name, PluginsFile(), installed_plugins()) for name in names]
    settings = [setting for plugin in found for kind in plugin.kinds for setting in kind.settings]
    assert {"path", "poll_interval", "min_severity"} <= {setting.name for setting in settings}
    assert [setting.name for setting in settings if not setting.description] == []


class Odd:
    """Nothing that JSON Schema knows."""


class Inner(BaseModel):
    """A table within a table, and of itself."""

    size: int = 1
    more: list[Inner] = []


class Settings(Provider.Settings):
    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    secret: SecretStr = Field(description="What is secret.")
    headers: dict[str, SecretStr] = Field(default={})
    wait: Duration = timedelta(minutes=90)
    steps: tuple[Duration, ...] = (timedelta(seconds=5), timedelta(days=2))
    none: timedelta = timedelta(0)
    mode: Literal["on", "öff"] | None = None
    size: int = Field(default=3, ge=1, lt=9)
    network: Network | None = None
    ratio: int | float = 0.5
    odd: Odd | None = None
    bare: dict = Field(default={})
    numbers: dict[int, list] = Field(default={})
    pairs: list[tuple[int, str]] = Field(default=[])
    inner: Inner = Inner()
    inners: dict[str, Inner] | bool = False
    union: int | list[str] | Literal["all"] = "all"
    whatever: Any = None
    json_value: JsonValue = None
    calls: Callable[[], int] | None = None
    named: frozenset[str] = Field(default=frozenset({"one"}), alias="called")


def told(model: type[PluginSettings] = Settings):
    return {setting.name: setting for setting in list_settings(model, Provider.Settings)}


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        ("secret", 'secret: { env = "NAME" } or { file = "path" }', None),
        ("headers", 'table of secrets: { env = "NAME" } or { file = "path" }', "{}"),
        ("wait", 'text such as "30s"', '"90m"'),
        ("steps", 'list of text such as "30s"', '["5s", "2d"]'),
        ("none", "text", '"0s"'),
        ("mode", 'one of "on", "öff"', None),
        ("size", "whole number, at least 1, less than 9", "3"),
        ("network", 'text such as "10.20.0.0/16"', None),
        ("ratio", "whole number or number", "0.5"),
        ("odd", "anything", None),
        ("bare", "table", "{}"),
        ("numbers", "table of lists of anything", "{}"),
        ("pairs", "list of lists of anything", "[]"),
        ("inner", "table", '{"size": 1, "more": []}'),
        ("inners", "table of tables or true or false", "false"),
        ("union", 'whole number or list of text or "all"', '"all"'),
        ("whatever", "anything", None),
        ("json_value", "anything", None),
        ("calls", "anything", None),
        ("named", "list of text", '["one"]'),
        ("quiet_first_fetch", "true or false", "false"),
    ],
)
def test_a_setting_is_told_as_it_is_written(name, kind, default):
    assert (told()[name].type, told()[name].default) == (kind, default)


def test_a_setting_is_told_whether_it_is_required_secret_and_its_own():
    told_of = told()
    required = [name for name, setting in told_of.items() if setting.required]
    secret = [name for name, setting in told_of.items() if setting.secret]
    own = [name for name, setting in told_of.items() if not setting.common]
    assert required == ["secret", "plugin"]
    assert secret == ["secret", "headers"]
    assert own == list(Settings.model_fields)[len(Provider.Settings.model_fields) :]
    assert told_of["secret"].description == "What is secret."
