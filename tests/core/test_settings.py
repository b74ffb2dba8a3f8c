"""The environment, judged at once."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from tocsin.errors import ConfigurationError
from tocsin.settings import SECRETS, NodeRole, load_settings


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in os.environ:
        if name.startswith("TOCSIN_"):
            monkeypatch.delenv(name)


def problems(monkeypatch, **variables: str) -> list[str]:
    for name, value in variables.items():
        monkeypatch.setenv(f"TOCSIN_{name}", value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    return [str(problem) for problem in caught.value.problems]


def test_nothing_needs_to_be_set():
    settings = load_settings()
    assert settings.database == f"sqlite:///{Path('data', 'tocsin.db')}"
    assert settings.public_url == "http://127.0.0.1:8080"


def test_every_wrong_variable_is_named_at_once(monkeypatch):
    found = problems(monkeypatch, PORT="http", LOG_FORMAT="xml", BASE_URL="tocsin.example.org")
    assert [line.split(": ")[1] for line in found] == [
        "TOCSIN_PORT",
        "TOCSIN_BASE_URL",
        "TOCSIN_LOG_FORMAT",
    ]


def test_a_misspelt_variable_is_named_with_the_right_one(monkeypatch):
    [problem] = problems(monkeypatch, PROT="8080")
    assert "did you mean 'TOCSIN_PORT'?" in problem


@pytest.mark.parametrize("name", ["SENTINEL_SECRET", "JIRA_CLIENT_SECRET"])
def test_a_variable_of_the_operators_own_is_none_of_ours(monkeypatch, name):
    monkeypatch.setenv(f"TOCSIN_{name}", "x")
    load_settings()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("::1", "http://[::1]:8080"),
        ("soc.local", "http://soc.local:8080"),
    ],
)
def test_the_public_url_is_one(monkeypatch, host, url):
    monkeypatch.setenv("TOCSIN_HOST", host)
    monkeypatch.setenv("TOCSIN_TLS_TERMINATED", "true")
    assert load_settings().public_url == url


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_leads_nowhere_needs_a_base_url(monkeypatch, host):
    monkeypatch.setenv("TOCSIN_HOST", host)
    monkeypatch.setenv("TOCSIN_TLS_TERMINATED", "true")
    with pytest.raises(ConfigurationError, match="TOCSIN_BASE_URL"):
        load_settings()
    monkeypatch.setenv("TOCSIN_BASE_URL", "https://tocsin.example.org")
    load_settings()


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "soc.local"])
def test_credentials_never_arrive_in_plain_text(monkeypatch, host):
    monkeypatch.setenv("TOCSIN_HOST", host)
    monkeypatch.setenv("TOCSIN_BASE_URL", "http://tocsin.example.org")
    with pytest.raises(ConfigurationError, match=r"TOCSIN_HOST.*unencrypted"):
        load_settings()


@pytest.mark.parametrize(
    ("issuer", "is_right"),
    [
        ("https://id.example.org/realms/soc", True),
        ("http://127.0.0.1:8081", True),
        ("http://localhost/", True),
        ("http://id.example.org", False),
        ("http://127.0.0.1.example.org", False),
    ],
)
def test_an_issuer_is_asked_over_tls(monkeypatch, issuer, is_right):
    monkeypatch.setenv("TOCSIN_OIDC_ISSUER", issuer)
    monkeypatch.setenv("TOCSIN_OIDC_AUDIENCE", "tocsin")
    with nullcontext() if is_right else pytest.raises(ConfigurationError, match="TLS"):
        load_settings()


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"OIDC_ISSUER": "https://id.example.org"}, "TOCSIN_OIDC_AUDIENCE"),
        ({"OIDC_AUDIENCE": "tocsin"}, "TOCSIN_OIDC_ISSUER"),
        ({"OIDC_CLIENT_ID": "tocsin"}, "TOCSIN_OIDC_ISSUER"),
        ({"OIDC_CLIENT_SECRET": "s3cret"}, "TOCSIN_OIDC_CLIENT_ID"),
    ],
)
def test_an_issuer_goes_with_what_it_is_for(monkeypatch, given, missing):
    [problem] = problems(monkeypatch, **given)
    assert missing in problem.split(": ")[1]
    assert "s3cret" not in problem


@pytest.mark.parametrize("purpose", ["OIDC_AUDIENCE", "OIDC_CLIENT_ID"])
def test_an_issuer_may_be_for_either(monkeypatch, purpose):
    monkeypatch.setenv("TOCSIN_OIDC_ISSUER", "https://id.example.org")
    monkeypatch.setenv(f"TOCSIN_{purpose}", "tocsin")
    load_settings()


def test_lists_are_separated_by_commas_and_each_part_is_judged(monkeypatch):
    monkeypatch.setenv("TOCSIN_TRUSTED_PROXIES", "10.0.0.0/8, ::1/128")
    monkeypatch.setenv("TOCSIN_CORS_ORIGINS", "https://soar.example.org")
    settings = load_settings()
    assert [str(network) for network in settings.trusted_proxies] == ["10.0.0.0/8", "::1/128"]
    assert settings.cors_origins == ("https://soar.example.org",)
    monkeypatch.setenv("TOCSIN_TRUSTED_PROXIES", "10.0.0.1/8")
    monkeypatch.setenv("TOCSIN_CORS_ORIGINS", "https://soar.example.org/path")
    with pytest.raises(ConfigurationError) as error:
        load_settings()
    assert len(error.value.problems) == 2


def test_a_node_has_every_role_unless_some_are_named(monkeypatch):
    assert load_settings().roles == tuple(NodeRole)
    monkeypatch.setenv("TOCSIN_ROLES", "")
    assert load_settings().roles == tuple(NodeRole)


def test_roles_keep_their_order_and_are_taken_once_in_any_case(monkeypatch):
    monkeypatch.setenv("TOCSIN_ROLES", "deliver, API,sync,api")
    assert load_settings().roles == (NodeRole.DELIVER, NodeRole.API, NodeRole.SYNC)


@pytest.mark.parametrize("roles", ["api,delivr", "api,", ",", "all"])
def test_a_role_that_is_none_is_answered_with_those_there_are(monkeypatch, roles):
    [problem] = problems(monkeypatch, ROLES=roles)
    assert problem.endswith(
        f"TOCSIN_ROLES: found {roles!r}; use one of: api, sync, investigate, schedule, deliver"
    )


@pytest.mark.parametrize("prefix", ["a", "acme_tocsin", "_acme_", f"a{'b' * 31}_", "acme-tocsin_"])
def test_a_key_prefix_ends_with_an_underscore(monkeypatch, prefix):
    monkeypatch.setenv("TOCSIN_KEY_PREFIX", "a_")
    assert load_settings().key_prefix == "a_"
    [problem] = problems(monkeypatch, KEY_PREFIX=prefix)
    assert "TOCSIN_KEY_PREFIX" in problem


@pytest.mark.parametrize(("limit", "is_right"), [("1", True), ("1000", True), ("0", False)])
def test_a_schedule_may_fail_once_at_least(monkeypatch, limit, is_right):
    monkeypatch.setenv("TOCSIN_SCHEDULE_FAILURE_LIMIT", limit)
    with nullcontext() if is_right else pytest.raises(ConfigurationError, match="FAILURE_LIMIT"):
        assert load_settings().schedule_failure_limit == int(limit)


def test_the_base_url_ends_without_a_slash(monkeypatch):
    monkeypatch.setenv("TOCSIN_BASE_URL", "https://tocsin.example.org/soc/")
    assert load_settings().public_url == "https://tocsin.example.org/soc"


@pytest.mark.parametrize("name", SECRETS)
def test_each_secret_may_be_in_a_file(monkeypatch, tmp_path, name):
    file, value = tmp_path / "secret", "sqlite:////srv/tocsin/tocsin.db"
    file.write_text(f"{value}\n")
    monkeypatch.setenv("TOCSIN_OIDC_CLIENT_ID", "tocsin")
    monkeypatch.setenv("TOCSIN_OIDC_ISSUER", "https://issuer.example")
    monkeypatch.setenv(f"TOCSIN_{name.upper()}_FILE", str(file))
    settings = load_settings()
    assert getattr(settings, name).get_secret_value() == value
    assert settings.secret_files == {name: file}
    assert value not in repr(settings)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "readable \\(No such file"),
        (b" \n", "is empty: write the secret to it"),
        (b"\xff", "readable \\(not UTF-8"),
    ],
)
def test_a_file_without_a_secret_is_named_with_its_remedy(monkeypatch, tmp_path, content, reason):
    file = tmp_path / "metrics.token"
    if content is not None:
        file.write_bytes(content)
    [problem] = problems(monkeypatch, METRICS_TOKEN_FILE=str(file))
    assert problem.startswith("environment: TOCSIN_METRICS_TOKEN_FILE: found")
    assert re.search(reason, problem)


def test_a_secret_and_a_file_with_one_are_one_too_many(monkeypatch):
    [problem] = problems(monkeypatch, METRICS_TOKEN="secret", METRICS_TOKEN_FILE="metrics.token")
    assert problem.endswith(
        "found both this setting and TOCSIN_METRICS_TOKEN; set only one of them"
    )


def test_an_event_loop_that_is_not_installed_is_reported(monkeypatch):
    monkeypatch.setattr("tocsin.settings.environment.find_spec", lambda _: None)
    [problem] = problems(monkeypatch, EVENT_LOOP="uvloop")
    assert "TOCSIN_EVENT_LOOP" in problem
    assert "pip install 'tocsin[uvloop]'" in problem
