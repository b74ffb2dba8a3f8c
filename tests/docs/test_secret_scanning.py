"""Rules for secret scanners: they find all credentials, and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tocsin.credentials import generate_client_secret, generate_key

FILE = Path(__file__).parents[2] / "docs/secret-scanning/gitleaks.toml"
CONFIGURATION = tomllib.loads(FILE.read_text(encoding="utf-8"))
RULES = {rule["id"]: rule for rule in CONFIGURATION["rules"]}
MAKERS = {
    "tocsin-api-key": lambda: generate_key()[1],
    "tocsin-client-secret": generate_client_secret,
}
PLACES = {
    "alone": "{}",
    "environment file": "NAME=value\nTOCSIN_SECRET={}\nOTHER=value\n",
    "JSON": '{{"secret": "{}", "scopes": ["incidents:read"]}}',
    "JSON in JSON": '{{"log": "sent\\n{}\\nfailed"}}',
    "Python": "client = Client(secret='{}')  # for now\n",
    "header": "curl -H 'X-API-Key: {}' https://tocsin.example.org",
    "Basic credentials": "https://cl_0123456789abcdef:{}@tocsin.example.org/oauth/token",
    "query": "https://tocsin.example.org/api/v1/incidents?api_key={}&limit=1",
    "YAML list": "secrets:\n  - {}\n",
}
NEAR_MISSES = {
    "shorter": lambda secret: secret[:-1],
    "longer": lambda secret: secret + "A",
    "another prefix": lambda secret: "xx" + secret[2:],
    "not base62": lambda secret: secret[:-1] + "-",
    "what a list shows": lambda secret: secret[:24],
    "placeholder": lambda secret: secret[:8] + "...",
}


def found(rule: str, text: str) -> list[str]:
    """Return what gitleaks would report: it looks for the keywords first, in lower case."""
    if not any(keyword in text.lower() for keyword in RULES[rule]["keywords"]):
        return []
    group = RULES[rule]["secretGroup"]
    return [match[group] for match in re.finditer(RULES[rule]["regex"], text)]


def test_there_is_a_rule_for_each_kind_of_secret():
    assert RULES.keys() == MAKERS.keys()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_secret_is_found_wherever_it_stands(rule, place):
    for secret in (MAKERS[rule]() for _ in range(20)):
        assert found(rule, place.format(secret)) == [secret]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("change", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_what_is_no_secret_is_not_reported(rule, change):
    for secret in (MAKERS[rule]() for _ in range(20)):
        assert found(rule, f"secret = {change(secret)}\n") == []


@pytest.mark.parametrize("rule", RULES)
def test_one_kind_is_not_taken_for_the_other(rule):
    others = [make() for name, make in MAKERS.items() if name != rule]
    assert found(rule, "\n".join(others)) == []


@pytest.mark.parametrize("rule", RULES)
def test_the_expression_is_one_that_re2_takes(rule):
    assert not re.search(r"\(\?[=!<>]|\(\?P[=<]|\\[1-9]", RULES[rule]["regex"])
