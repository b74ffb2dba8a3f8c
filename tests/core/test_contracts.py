"""Receiver contracts: parsing with all errors, and validation of bodies."""

from __future__ import annotations

import json

import pytest

from tocsin.contracts import find_violations, load_contract
from tocsin.errors import ConfigurationError

GOOD = """
name = "Acme"
documentation = "https://docs.acme.example"
idempotency = "none"
tested = "contract"
url = "https://acme.example/<path>"
largest = 100
"""
SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {"title": {"type": "string", "maxLength": 5}},
    "additionalProperties": False,
}


@pytest.fixture
def write(tmp_path):
    def write(text=GOOD, schema=SCHEMA, folder="shipped"):
        place = tmp_path / folder / "acme"
        place.mkdir(parents=True, exist_ok=True)
        (place / "contract.toml").write_text(text, encoding="utf-8")
        if schema is not None:
            (place / "body.schema.json").write_text(json.dumps(schema), encoding="utf-8")
        return tmp_path / folder

    return write


def test_the_first_folder_that_has_one_decides(write, tmp_path):
    shipped, mine = write(), write(GOOD.replace("Acme", "Mine"), folder="mine")
    assert load_contract([mine, shipped], "acme").name == "Mine"
    assert load_contract([tmp_path / "none", shipped], "acme").name == "Acme"
    assert load_contract([shipped], "other") is None


def test_contract_and_schema_are_looked_up_each_by_itself(write, tmp_path):
    shipped, mine = write(), write(GOOD.replace("Acme", "Mine"), None, folder="mine")
    found = load_contract([mine, shipped], "acme")
    assert (found.name, found.body) == ("Mine", SCHEMA)
    (mine / "acme/contract.toml").unlink()
    (mine / "acme/body.schema.json").write_text('{"type": "array"}', encoding="utf-8")
    found = load_contract([mine, shipped], "acme")
    assert (found.name, found.body) == ("Acme", {"type": "array"})
    assert load_contract([mine], "acme") is None


def test_a_schema_that_is_no_json_is_told_with_its_file(write):
    folder = write()
    (folder / "acme/body.schema.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"body\.schema\.json: "):
        load_contract([folder], "acme")


@pytest.mark.parametrize(
    ("body", "breaches"),
    [
        (b'{"title": "short"}', []),
        (b'{"title": "longer"}', ["title: 'longer' is too long"]),
        (b"{}", ["the body: 'title' is a required property"]),
        (b'{"title": 7, "x": 1}', ["the body: Additional properties", "title: 7 is not of type"]),
        (b"{", ["it is not JSON: "]),
        (b'{"title": "' + b"x" * 100 + b'"}', ["it has 113 bytes; Acme accepts 100", "title: "]),
    ],
)
def test_every_breach_is_told_with_its_place(write, body, breaches):
    found = find_violations(load_contract([write()], "acme"), body)
    assert len(found) == len(breaches)
    assert all(words in told for words, told in zip(breaches, found, strict=True))


@pytest.mark.parametrize(
    ("text", "schema", "words"),
    [
        (GOOD + "color = 1", SCHEMA, "color: unknown key"),
        (GOOD.replace('"none"', '"never"'), SCHEMA, "idempotency: found 'never'; use one of"),
        (GOOD + '[answer]\nremote_id = "id"', SCHEMA, "answer.remote_id: found 'id'"),
        (GOOD + '[severity]\nAwful = "x"', SCHEMA, "severity.Awful"),
        ("name =", SCHEMA, "Invalid value"),
        (GOOD, {"type": "objekt"}, "write a JSON Schema"),
    ],
)
def test_what_is_wrong_with_a_contract_is_told_with_its_file(write, text, schema, words):
    with pytest.raises(ConfigurationError) as refused:
        load_contract([write(text, schema)], "acme")
    assert words in str(refused.value)
    assert "acme" in str(refused.value)
