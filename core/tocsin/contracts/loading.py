"""Reading contracts from the folders of templates."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tocsin.errors import ConfigurationError, Problem
from tocsin.model import Contract
from tocsin.validation import explain

CONTRACT = "contract.toml"
SCHEMA = "body.schema.json"


def load_contract(folders: Sequence[Path], receiver: str) -> Contract | None:
    """Return the contract of a receiver, from the first folder that has one; None where none has.

    Raises ConfigurationError with everything that is wrong with it.
    """
    for folder in folders:
        path = folder / receiver / CONTRACT
        if path.is_file():
            return _read(path)
    return None


def _read(path: Path) -> Contract:
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        content |= _read_schema(path.with_name(SCHEMA))
    except (OSError, ValueError) as error:
        raise _wrong(path, "", str(error), "mend it there") from error
    try:
        return Contract.model_validate(content)
    except ValidationError as error:
        mistakes = explain(error, Contract)
        problems = [Problem(str(path), ".".join(it.path), it.found, it.expected) for it in mistakes]
        raise ConfigurationError(problems) from error


def _read_schema(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    from jsonschema import Draft202012Validator, SchemaError  # take their time to be imported

    schema = json.loads(path.read_text(encoding="utf-8"))
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = ".".join(map(str, error.path))
        raise _wrong(path, place, error.message, "write a JSON Schema (2020-12)") from error
    return {"body": schema}


def _wrong(path: Path, key: str, found: str, expected: str) -> ConfigurationError:
    return ConfigurationError([Problem(str(path), key, found, expected)])
