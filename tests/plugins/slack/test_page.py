"""Slack page: statements about scopes, settings and errors."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from slack_requests import SIGNING_SECRET
from tocsin import (
    Channel,
    CredentialsRefused,
    EventType,
    Misconfigured,
    PluginFailure,
    Refused,
    TryLater,
)
from tocsin.fields import SettingsOrigin
from tocsin_plugins.slack import Slack
from tocsin_plugins.slack.failures import build_failure

from .simulator import TOKEN

PAGE = (Path(__file__).parents[3] / "docs/soar/slack.md").read_text(encoding="utf-8")
FIELDS = Slack.Settings.model_fields


def samples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def rows(heading: str) -> list[tuple[str, ...]]:
    table = PAGE.split(heading)[1].split("\n\n")[0]
    lines = [line for line in table.splitlines()[2:] if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_table_of_settings_is_complete():
    documented = {
        name for row in rows("| Setting | Meaning | Default |") for name in quoted(row[0])
    }
    shared = {
        name
        for name, field in Channel.Settings.model_fields.items()
        if field.default == FIELDS[name].default
    }
    assert documented | shared == set(FIELDS)


def test_the_defaults_are_those_of_the_code():
    defaults = {row[0].strip("`"): row[2] for row in rows("| Setting | Meaning | Default |")}
    for name in ("template", "concurrency", "rate_limit", "api_url", "ordered"):
        assert quoted(defaults[name])[0].lower() == str(FIELDS[name].default).lower()
    assert tuple(map(EventType, quoted(defaults["broadcast"]))) == FIELDS["broadcast"].default


@pytest.mark.parametrize("sample", samples("toml"))
def test_the_destinations_are_valid(sample, monkeypatch, tmp_path):
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SIGNING_SECRET)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/slack-webhook").write_text("https://hooks.slack.com/services/T/B/x")
    file = tomllib.loads(sample)
    assert file["enabled"] == ["slack"]
    [destination] = file["destinations"].values()
    Slack.Settings.model_validate(destination, context=SettingsOrigin(tmp_path).context())


@pytest.fixture
def manifest():
    [sample] = samples("yaml")
    return yaml.safe_load(sample)


async def test_with_the_manifests_scopes_no_event_comes_twice(make, slack, manifest):
    slack.scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    assert slack.scopes <= {scope for row in rows("| Scope |") for scope in quoted(row[0])}
    health = await make().check()
    assert health.problems == ()
    assert "does not post any event twice" in health.detail


async def test_none_of_the_manifests_scopes_is_for_nothing(make, slack, manifest):
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    for scope in scopes:
        slack.channel.is_private = scope.startswith("groups")
        slack.scopes = scopes - {scope}
        health = await make().check()
        assert scope in " ".join((health.detail, *health.problems))


def kinds() -> list[tuple[str, type[PluginFailure]]]:
    """Return the errors that the page names, with the results that it gives for them."""
    words = {
        "waits as long": TryLater,
        "retries": TryLater,
        "set a new token": CredentialsRefused,
        "names the scope": Misconfigured,
        "inviting the bot": Misconfigured,
        "is disabled": Refused,
        "dead": Refused,
    }
    found = []
    for said, follows in rows("| Slack's response |"):
        [kind] = {kind for word, kind in words.items() if word in follows}
        found += [(error, kind) for error in quoted(said)]
    return found


@pytest.mark.parametrize(("error", "kind"), kinds())
def test_an_error_is_what_the_page_says(error, kind):
    assert type(build_failure(error, {}, status=200, response=b"")) is kind


def test_an_error_that_holds_or_disables_the_destination_is_told_as_such():
    for said, follows in rows("| Slack's response |"):
        for error in quoted(said):
            failure = build_failure(error, {}, status=200, response=b"")
            assert getattr(failure, "throttled", False) == ("waits as long" in follows)
            assert getattr(failure, "unwanted", False) == ("is disabled" in follows)
