"""The environment, judged at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tocsin.errors import ConfigurationError
from tocsin.settings import load_settings


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


def test_a_variable_of_the_operators_own_is_none_of_ours(monkeypatch):
    monkeypatch.setenv("TOCSIN_SENTINEL_SECRET", "x")
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


def test_the_base_url_ends_without_a_slash(monkeypatch):
    monkeypatch.setenv("TOCSIN_BASE_URL", "https://tocsin.example.org/soc/")
    assert load_settings().public_url == "https://tocsin.example.org/soc"
