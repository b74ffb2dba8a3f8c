"""Contract files in template folders."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tocsin.errors import ConfigurationError, ConfigurationProblem
from tocsin.model import Contract
from tocsin.validation import explain_errors

CONTRACT = "contract.toml"
SCHEMA = "body.schema.json"


def load_contract(folders: Sequence[Path], receiver: str) -> Contract | None:
    """Return the contract of a receiver; None if no folder has one.

    Contract and schema each come from the first folder that has them. Raises ConfigurationError
    with every problem.
    """
    path = _find_file(folders, receiver, CONTRACT)
    return None if path is None else _read(path, _find_file(folders, receiver, SCHEMA))


def _find_file(folders: Sequence[Path], receiver: str, name: str) -> Path | None:
    paths = (folder / receiver / name for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def _read(path: Path, schema: Path | None) -> Contract:
    content: dict[str, Any] = _read_toml(path)
    if schema is not None:
        content["body"] = _read_schema(schema)
    try:
        return Contract.model_validate(content)
    except ValidationError as error:
        mistakes = explain_errors(error, Contract)
        problems = [
            ConfigurationProblem(str(path), ".".join(mistake.path), mistake.found, mistake.expected)
            for mistake in mistakes
        ]
        raise ConfigurationError(problems) from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _build_error(path, "", str(error), "fix the syntax there") from error


def _read_schema(path: Path) -> Any:
    from jsonschema import Draft202012Validator, SchemaError  # take their time to be imported

    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
        Draft202012Validator.check_schema(schema)
    except (OSError, ValueError) as error:
        raise _build_error(path, "", str(error), "fix the syntax there") from error
    except SchemaError as error:
        place = ".".join(map(str, error.path))
        raise _build_error(path, place, error.message, "write a JSON Schema (2020-12)") from error
    return schema


def _build_error(path: Path, key: str, found: str, expected: str) -> ConfigurationError:
    return ConfigurationError([ConfigurationProblem(str(path), key, found, expected)])
