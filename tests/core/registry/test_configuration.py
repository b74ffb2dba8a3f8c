"""How plugins.toml is judged: everything at once, with where, what, and what would be right."""

from __future__ import annotations

import re
import tomllib
from base64 import b64encode
from datetime import timedelta
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tocsin import ApiSettings, Capability, CaseChannel, Channel, Enricher, PushProvider
from tocsin.clock import SystemClock
from tocsin.errors import ConfigurationError
from tocsin.model import EventType, IncidentStatus, Severity
from tocsin.observables import EnvironmentSettings
from tocsin.recurrence import Overlap
from tocsin.registry import (
    InstalledPlugin,
    PluginFactory,
    installed_plugins,
    load_configuration,
    start_plugins,
)
from tocsin.registry.entry_points import ON_BY_DEFAULT

SECRET = "whsec_" + "QUJD" * 10
SIGNING_KEY = "whsk_" + b64encode(bytes(32)).decode()

VALID = """
enabled = ["suricata", "webhook"]

[providers.edge]
plugin = "suricata"
path = "/var/log/suricata/eve.json"

[destinations.soc]
plugin = "webhook"
url = "https://soc.example.org/hook"
secret = { env = "SOC_SECRET" }
"""


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("SOC_SECRET", SECRET)


@pytest.fixture
def write(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "plugins.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def problems(write):
    async def problems(text: str, installed=None) -> list[str]:
        with pytest.raises(ConfigurationError) as caught:
            await load_configuration(write(text), installed)
        return [str(problem) for problem in caught.value.problems]

    return problems


@pytest.fixture
def third_party(tmp_path, monkeypatch):
    """Return a function that makes an installed plugin of source text."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(name: str, source: str, group: str = "tocsin.plugins") -> InstalledPlugin:
        module = f"third_party_{name}_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{module}.py").write_text(source)
        return InstalledPlugin(name, group, f"dist-{name}", "1", EntryPoint(name, module, group))

    return make


async def test_a_valid_file_becomes_settings(write):
    configuration = await load_configuration(write(VALID))
    [provider], [destination] = configuration.providers, configuration.destinations
    assert (provider.name, provider.settings.poll_interval) == ("edge", timedelta(seconds=5))
    assert destination.settings.secret.get_secret_value() == SECRET
    assert destination.settings.events == tuple(EventType)
    assert destination.settings.min_severity is Severity.MEDIUM


async def test_five_mistakes_give_five_precise_messages(problems):
    found = await problems(
        """
        enabled = ["suricatta", "webhook", "ocsf"]
        [providers.edge]
        plugin = "ocsf"
        pth = "/var/log/findings.jsonl"
        poll_interval = "5 parsecs"
        [destinations.soc]
        plugin = "webhook"
        url = "https://soc.example.org/hook"
        secret = "whsec_written_here"
        min_severity = "Hihg"
        """
    )
    assert sorted(found) == sorted(
        [
            "plugins.toml: enabled: no plugin 'suricatta' is installed; "
            "install the package that contains it, or use one of: "
            f"{', '.join(plugin.name for plugin in installed_plugins())}; "
            "did you mean 'suricata'?",
            "plugins.toml: providers.edge.path: missing; "
            "expected: The file to read, or a glob pattern. "
            "Tocsin also reads the rotated versions of each file.",
            "plugins.toml: providers.edge.poll_interval: found '5 parsecs'; "
            "use a number with a unit, such as '30s', '5m', '24h' or '7d'",
            "plugins.toml: providers.edge.pth: unknown key; remove it; did you mean 'path'?",
            "plugins.toml: destinations.soc.min_severity: found 'Hihg'; "
            "use one of: Informational, Low, Medium, High, Critical",
            "plugins.toml: destinations.soc.secret: found a secret in plain text; "
            'use { env = "NAME" } or { file = "path" }',
        ]
    )


async def test_a_table_without_any_enabled_plugin_for_it_asks_for_one(problems):
    assert await problems('enabled = []\n[intake]\nplugin = "absent"') == [
        "plugins.toml: intake.plugin: no plugin 'absent' is installed; "
        "install the package that contains it, or enable a plugin for `intake`"
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("enabled =", "enabeld ="), "enabeld: unknown key; remove it; did you mean 'enabled'?"),
        (('enabled = ["suricata", ', "enabled = ["), "'suricata' is installed but not enabled"),
        (('plugin = "suricata"', 'plugin = "webhook"'), "'webhook' cannot be used in `providers`"),
        (('plugin = "suricata"', ""), "providers.edge.plugin: missing; use one of: suricata"),
        (('plugin = "suricata"', "plugin = 7"), "providers.edge.plugin: found 7"),
        (("[providers.edge]", '[providers."a b"]'), "use letters, digits, - and _"),
        (('env = "SOC_SECRET"', 'env = "ABSENT"'), "set the environment variable ABSENT"),
        (('env = "SOC_SECRET"', 'file = "absent"'), "absent readable (No such file or directory)"),
        (('env = "SOC_SECRET"', 'enf = "X"'), 'use { env = "NAME" } or { file = "path" }'),
        (("https://", "http://"), "use an https:// URL, or add the private network"),
        (("/hook", '/hook"\ntemplate = "enveloppe'), "did you mean 'envelope'?"),
        (("/hook", '/hook"\ntimeout = "2m'), "at most 60s"),
        (
            ("/hook", '/hook"\nevents = ["incident-alrt"]#'),
            "events.0: found 'incident-alrt'; use one of: 'incident-alert', "
            "'investigation-completed', 'investigation-failed' or 'schedule-disabled'; "
            "did you mean 'incident-alert'?",
        ),
        (("/hook", '/hook"\nevents = []#'), "events: found an empty list; add at least one item"),
        (
            ("/hook", '/hook"\nallow_networks = ["10.0.0.1/8"]#'),
            "allow_networks.0: found '10.0.0.1/8'; the address has host bits set; "
            "write '10.0.0.0/8'",
        ),
        (("[providers.edge]", '[providers.edge]\npoll_interval = "0s"'), "greater than 0"),
        (
            ("[providers.edge]", '[providers.edge]\npoll_interval = "999999999w"'),
            "use a number with a unit",
        ),
    ],
)
async def test_each_mistake_is_named_where_it_stands(problems, change, expected):
    assert expected in "\n".join(await problems(VALID.replace(*change)))


@pytest.mark.parametrize(
    ("enabled", "mistake"),
    [
        ('"suricata"', "enabled: found 'suricata'; use a list"),
        ('["suricata", 7]', "enabled.1: found 7"),
    ],
)
async def test_of_enabled_that_is_wrong_nothing_follows(problems, enabled, mistake):
    text = VALID.replace('["suricata", "webhook"]', enabled)
    [problem] = await problems(text)
    assert mistake in problem


async def test_what_is_wrong_with_sections_that_are_not_needed_is_left_out(write):
    path = write(VALID.replace("SOC_SECRET", "ABSENT"))
    configuration = await load_configuration(path, sections=("providers",))
    assert [provider.name for provider in configuration.providers] == ["edge"]
    assert configuration.destinations == []
    path.write_text(VALID.replace("SOC_SECRET", "ABSENT").replace("eve.json", 'eve.json"\npth = "'))
    with pytest.raises(ConfigurationError) as caught:
        await load_configuration(path, sections=("providers",))
    [problem] = caught.value.problems
    assert problem.key == "providers.edge.pth"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"enabled = [", "not valid TOML"),
        (b"enabled = ['\xff']", "save it as UTF-8"),
        (b"enabled = 'suricata'", "enabled: found 'suricata'; use a list"),
    ],
)
async def test_a_file_that_is_none_is_refused(tmp_path, content, expected):
    path = tmp_path / "plugins.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=expected):
        await load_configuration(path)


async def test_schedules_are_defined_by_name(write):
    text = VALID + '[schedules.nightly]\nquery = "new logins"\ncron = "0 2 * * *"\n'
    text += 'provider = "edge"\ntags = ["vpn"]\noverlap = "Queue"\n'
    text += '[schedules.often]\nquery = "new admins"\ninterval = "15m"\n'
    text += "starts_at = 2026-11-21T12:00:00+01:00\n"
    schedules = (await load_configuration(write(text))).schedules
    assert list(schedules) == ["nightly", "often"]
    nightly, often = schedules.values()
    assert (nightly.cron, nightly.provider, nightly.tags) == ("0 2 * * *", "edge", ("vpn",))
    assert (nightly.overlap, nightly.timeout) == (Overlap.QUEUE, timedelta(minutes=10))
    assert (often.interval, often.starts_at.hour) == (timedelta(minutes=15), 11)


async def test_everything_wrong_with_schedules_is_said_at_once_where_it_stands(problems):
    found = await problems(
        VALID
        + """
        [schedules.nightly]
        cron = "61 2 * * *"
        timezone = "Europe/Berln"
        persona = "boss"
        timeout = "1s"
        tag = "vpn"
        [schedules.both]
        query = "new logins"
        cron = "@daily"
        interval = "1h"
        [schedules."a b"]
        query = "new logins"
        interval = "1h"
        provider = "egde"
        [schedules.jittery]
        query = "new logins"
        interval = "1h"
        jitter = "1h"
        """
    )
    assert sorted(found) == sorted(
        [
            "plugins.toml: schedules.nightly.query: missing; expected: Question in plain "
            "language. It can contain entities, time ranges, terms and incident numbers.",
            "plugins.toml: schedules.nightly.cron: found '61 2 * * *'; the minute field '61' is "
            "invalid: use 0 to 59, a list, a range or a step",
            "plugins.toml: schedules.nightly.timezone: found 'Europe/Berln'; use a time zone from "
            "the IANA database, such as 'Europe/Berlin'; did you mean 'Europe/Berlin'?",
            "plugins.toml: schedules.nightly.persona: found 'boss'; "
            "use one of: analyst, threat-hunter, incident-responder, executive",
            "plugins.toml: schedules.nightly.timeout: found '1s'; "
            "use whole seconds, from 10s to 1d",
            "plugins.toml: schedules.nightly.tag: unknown key; remove it; did you mean 'tags'?",
            "plugins.toml: schedules.both.interval: found '1h'; set either `cron` or `interval`; "
            "both are given",
            "plugins.toml: schedules.a b: found the name 'a b'; use letters, digits, - and _",
            "plugins.toml: schedules.a b.provider: there is no provider 'egde'; "
            "use one of: edge; did you mean 'edge'?",
            "plugins.toml: schedules.jittery.jitter: found '1h'; "
            "the runs are 1h apart; use a shorter jitter",
        ]
    )


@pytest.mark.parametrize("table", ["[schedules]\nnightly = 7", "schedules = 7"])
async def test_a_schedule_that_is_no_table_is_refused(problems, table):
    [problem] = await problems(table)
    assert "use a table of names and values" in problem


async def test_a_mistake_at_the_top_hides_none_below(problems):
    found = await problems("strikt = true\n" + VALID.replace("/hook", '/hook"\ntimout = "5s'))
    assert [problem.split(": ")[1] for problem in found] == [
        "strikt",
        "destinations.soc.timout",
    ]


async def test_a_file_that_is_not_there_names_its_setting(tmp_path):
    with pytest.raises(ConfigurationError, match="TOCSIN_PLUGINS_FILE"):
        await load_configuration(tmp_path / "absent.toml")


async def test_no_message_shows_a_secret(problems, monkeypatch):
    monkeypatch.setenv("SOC_SECRET", "hunter2")
    assert "hunter2" not in "\n".join(await problems(VALID))


async def test_a_name_that_two_distributions_offer_is_refused(problems, third_party):
    twice = [*installed_plugins(), third_party("webhook", "")]
    assert "'webhook' is provided by dist-webhook and tocsin" in "\n".join(
        await problems(VALID, sorted(twice, key=lambda plugin: plugin.distribution))
    )


async def test_only_what_is_enabled_is_imported(write, third_party):
    bomb = third_party("bomb", "raise SystemError('imported')")
    configuration = await load_configuration(write(VALID), [*installed_plugins(), bomb])
    assert configuration.absent == []


BROKEN = {
    "import": "import nothing_of_that_name",
    "syntax": "def (",
    "unknown hook": "import tocsin\n@tocsin.hookimpl\ndef tocsin_chanels(): ...",
    "wrong kind": "import tocsin\n@tocsin.hookimpl\ndef tocsin_channels(): return int",
    "raises": "import tocsin\n@tocsin.hookimpl\ndef tocsin_channels(): raise OSError('no')",
}


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN.keys())
async def test_a_plugin_that_fails_to_load_costs_only_itself(write, third_party, source):
    text = VALID.replace('"webhook"]', '"webhook", "broken"]')
    text += '[destinations.other]\nplugin = "broken"\nmin_severity = "High"\nwhatever = 1\n'
    plugins = [*installed_plugins(), third_party("broken", source)]
    configuration = await load_configuration(write(text), plugins)
    assert [item.name for item in configuration.providers] == ["edge"]
    assert [absent.name for absent in configuration.absent] == ["broken", "destinations.other"]
    # events for it are kept, by what can be known of its settings
    other = configuration.destinations[1]
    assert (other.name, other.kind, other.settings.min_severity) == ("other", None, Severity.HIGH)


async def test_a_strict_configuration_leaves_nothing_out(problems, third_party):
    text = "strict = true\n" + VALID.replace('"webhook"]', '"webhook", "broken"]')
    plugins = [*installed_plugins(), third_party("broken", BROKEN["import"])]
    [problem] = await problems(text, plugins)
    assert "could not be imported" in problem


STARTLESS = """
import tocsin

class Startless(tocsin.Channel):
    async def start(self): raise OSError("no such device")
    async def check(self): ...
    async def deliver(self, delivery): ...

@tocsin.hookimpl
def tocsin_channels(): return Startless
"""


async def test_a_plugin_that_fails_to_start_is_left_out_with_its_reason(write, third_party):
    text = VALID.replace('"webhook"]', '"webhook", "startless"]')
    text += '[destinations.other]\nplugin = "startless"\n'
    plugins = [*installed_plugins(), third_party("startless", STARTLESS)]
    configuration = await load_configuration(write(text), plugins)
    live = await start_plugins(configuration, PluginFactory(SystemClock()))
    await live.close()
    assert sorted(live.channels) == ["soc"]
    [absent] = live.absent
    assert (absent.name, "no such device" in absent.reason) == ("destinations.other", True)


SHAPELESS = """
import tocsin

class Shapeless(tocsin.Provider):
    def __init__(self, settings, tools):
        {init}
    def streams(self): return {streams}
    async def check(self): ...
    async def read(self, stream, position, until): yield

@tocsin.hookimpl
def tocsin_providers(): return Shapeless
"""
TOOLED = "super().__init__(settings, tools)"


@pytest.mark.parametrize(
    ("init", "streams", "reason"),
    [
        (
            "pass",
            "('changed',)",
            "call `super().__init__(settings, tools)` in `Shapeless.__init__`",
        ),
        ("self.tools = tools", "('changed',)", "call `super().__init__(settings, tools)`"),
        (TOOLED, "None", "return a tuple of names from `Shapeless.streams`, not None"),
        (TOOLED, "'changed'", "return a tuple of names from `Shapeless.streams`, not 'changed'"),
        (TOOLED, "(1,)", "return a tuple of names from `Shapeless.streams`, not (1,)"),
        ("raise SystemExit(3)", "()", "SystemExit: 3"),
    ],
)
async def test_a_provider_that_is_not_whole_is_left_out_with_words_for_its_author(
    write, third_party, init, streams, reason
):
    source = SHAPELESS.format(init=init, streams=streams)
    text = VALID.replace('"webhook"]', '"webhook", "shapeless"]')
    text += '[providers.other]\nplugin = "shapeless"\n'
    plugins = [*installed_plugins(), third_party("shapeless", source)]
    configuration = await load_configuration(write(text), plugins)
    live = await start_plugins(configuration, PluginFactory(SystemClock()))
    await live.close()
    [absent] = [plugin for plugin in live.absent if plugin.name == "providers.other"]
    assert reason in absent.reason
    assert sorted(live.channels) == ["soc"]


async def test_a_coroutine_hook_is_awaited(write, third_party):
    source = STARTLESS.replace("def tocsin_channels", "async def tocsin_channels")
    text = VALID.replace('"webhook"]', '"webhook", "patient"]')
    text += '[destinations.other]\nplugin = "patient"\n'
    plugins = [*installed_plugins(), third_party("patient", source)]
    configuration = await load_configuration(write(text), plugins)
    assert configuration.destinations[1].kind is not None


async def test_a_file_that_is_missing_is_named_as_the_reason(write):
    text = VALID.replace("[destinations.soc]", '[destinations.soc]\nca_file = "nope.pem"')
    live = await start_plugins(await load_configuration(write(text)), PluginFactory(SystemClock()))
    await live.close()
    [absent] = live.absent
    assert absent.reason.startswith("could not be started: ca_file: /")
    assert "nope.pem: No such file or directory; use" in absent.reason


async def test_the_shipped_templates_can_be_disabled(problems):
    [problem] = await problems('disabled = ["templates"]\n' + VALID)
    assert "destinations.soc.template: unknown template 'envelope'" in problem


async def test_what_is_not_on_by_default_cannot_be_disabled(problems):
    [problem] = await problems('disabled = ["webhook"]\n' + VALID)
    assert "'webhook' is not enabled by default" in problem


def shipped() -> str:
    return (Path(__file__).parents[3] / "plugins.toml").read_text()


async def test_the_shipped_file_is_valid_as_it_is(write):
    assert (await load_configuration(write(shipped()))).providers == []


async def test_the_shipped_file_is_valid_with_everything_in_it(write, tmp_path, monkeypatch):
    keep_secrets(tmp_path, monkeypatch)
    (tmp_path / "mappings").mkdir()
    (tmp_path / "mappings" / "acme.json.j2").write_text('{"incidents": []}')
    enabled = [plugin.name for plugin in installed_plugins() if plugin.name not in ON_BY_DEFAULT]
    text = shipped().replace("enabled = []", f"enabled = {enabled}")
    text = re.sub(r"(?m)^# (?=\[\w+(\.[\w-]+)*\]$|\w+ = )", "", text)
    everything = tomllib.loads(text)
    # they stand for others
    text = re.sub(r"(?m)^(mapping_file|records|webhook_url) = .*\n", "", text)
    text = text.replace("write_back = false", "write_back = true")  # which a status needs
    configuration = await load_configuration(write(text))
    assert [item.name for item in configuration.providers] == [
        "edge-sensors",
        "zeek",
        "runtime",
        "beats",
        "edge",
        "falcon",
        "datadog",
        "exabeam",
        "chronicle",
        "graylog",
        "qradar",
        "insightidr",
        "splunk",
        "elastic",
        "opensearch",
        "wazuh",
        "cloud",
        "tenant",
        "findings",
        "alertmanager",
    ]
    for item in configuration.providers:
        written = set(everything["providers"][item.name])
        known = set(item.kind.Settings.model_fields)
        if issubclass(item.kind, PushProvider):  # nothing is read of it
            known -= {"poll_interval", "quiet_first_fetch"}
        if Capability.COMMENT not in item.kind.capabilities():
            known -= {"write_back"}
        if Capability.STATUS not in item.kind.capabilities():
            known -= {"write_back_status"}
        if not can_close(item.kind):
            known -= {"close_from_tickets"}
        assert written == known, item.name
    expect_every_destination(configuration.destinations, everything["destinations"])
    expect_every_enricher(configuration.enrichers, everything["enrichers"])
    expect_the_investigator(configuration.investigator, everything["investigator"])
    assert set(everything["environment"]) == set(EnvironmentSettings.model_fields)
    assert configuration.environment.internal_networks == EnvironmentSettings().internal_networks


def keep_secrets(folder, monkeypatch):
    """Have every secret that the shipped file refers to."""
    (folder / "secrets").mkdir()
    for name in re.findall(r'file = "secrets/([^"]+)"', shipped()):
        content = SIGNING_KEY if ".key" in name else SECRET
        (folder / "secrets" / name).write_text("xoxb-1-a" if name == "slack" else content)
    for name in re.findall(r'env = "([^"]+)"', shipped()):
        monkeypatch.setenv(name, "https://hooks.example.com/x" if "URL" in name else "a secret")


def can_close(kind):
    return Capability.STATUS in kind.capabilities() and IncidentStatus.CLOSED in kind.settable


def expect_every_destination(configured, written):
    """Each kind stands there with all settings of its own, and what several take once."""
    of_all = (set(Channel.Settings.model_fields) | set(CaseChannel.Settings.model_fields)) - {"url"}
    for item in configured:
        own = set(item.kind.Settings.model_fields) - of_all - {"secret_url"}  # `url` sets that too
        assert set(written[item.name]) - of_all == own, item.name
    assert of_all <= {setting for table in written.values() for setting in table}
    modules = [plugin.entry_point.load() for plugin in installed_plugins()]
    offered = {module.tocsin_channels() for module in modules if hasattr(module, "tocsin_channels")}
    assert {item.kind for item in configured} == offered


def expect_every_enricher(configured, written):
    """Each kind stands there with all settings of its own, and what all of them take once."""
    of_all = (set(Enricher.Settings.model_fields) | set(ApiSettings.model_fields)) - {"url"}
    for item in configured:
        own = set(item.kind.Settings.model_fields) - of_all
        assert set(written.get(item.name, ())) - of_all == own, item.name
    assert of_all <= {setting for table in written.values() for setting in table}
    modules = [plugin.entry_point.load() for plugin in installed_plugins()]
    offered = {kind for module in modules for kind in getattr(module, "tocsin_enrichers", tuple)()}
    assert {item.kind for item in configured} == offered


def expect_the_investigator(configured, written):
    """It stands there with all its settings, and each has its default."""
    usual = configured.kind.Settings()
    assert configured.settings == usual
    assert set(written) == set(type(usual).model_fields)
    assert set(written["weights"]) == set(type(usual.weights).model_fields)
    for persona, bounds in usual.bounds.items():
        assert set(written["bounds"][persona]) == set(type(bounds).model_fields)


def test_every_entry_point_is_named_in_the_shipped_file():
    for plugin in installed_plugins():
        assert plugin.name in shipped()
