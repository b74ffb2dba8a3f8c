"""The lines of keys in plugins.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tocsin.registry import KeyLines

ROOT = Path(__file__).parents[3]

TEXT = '''\
enabled = [
  "suricata",  # a ] and a }
  "webhook",
]
strict = true

[providers.edge]
plugin = "suricata"
path = """
[not.a.table]
key = 1
"""

  [destinations."a b"] # a comment
  secret = { env = "A = B", file = 'x' }
  headers.Authorization = { env = "TOKEN" }
since = 2026-11-21 05:33:01Z
nested = [[1, 2], [
  3,
]]
[[things]]
name = 'first'
[[things]]
name = 'second'
'''

LINES = {
    "enabled": 1,
    "enabled.1": 3,
    "strict": 5,
    "providers.edge": 7,
    "providers.edge.plugin": 8,
    "providers.edge.path": 9,
    "providers.edge.poll_interval": 7,
    "destinations.a b": 14,
    "destinations.a b.secret.file": 15,
    "destinations.a b.headers.Authorization.env": 16,
    "destinations.a b.since": 17,
    "destinations.a b.nested.1.0": 19,
    "things.1.name": 24,
    "unknown.key": None,
}


@pytest.mark.parametrize(("key", "line"), LINES.items(), ids=LINES)
def test_the_line_of_a_key_is_found(key, line):
    assert KeyLines(TEXT).find(key) == line


def list_keys(value: Any, path: tuple[str, ...] = ()) -> list[str]:
    members = value.items() if isinstance(value, dict) else enumerate(value)
    keys = [".".join(path)] if path else []
    for name, member in members:
        here = (*path, str(name))
        keys += list_keys(member, here) if isinstance(member, dict | list) else [".".join(here)]
    return keys


@pytest.mark.parametrize(
    "path",
    ["plugins.toml", "core/tocsin/cli/demo/plugins.toml", "core/tocsin/cli/demo/scenarios.toml"],
)
def test_every_key_of_a_real_file_is_on_its_line(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    lines, found = text.splitlines(), KeyLines(text)
    for key in list_keys(tomllib.loads(text)):
        name = key.rpartition(".")[2]
        line = found.find(key)
        assert line is not None
        assert name.isdecimal() or name in lines[line - 1], key
