"""Validation of settings and rendered output against a contract."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import orjson

from tocsin.fields import is_secret_name
from tocsin.model import Contract

BODY = "body"
"""The JSON part."""
_MOST = 20
_SHOWN = 200
_ALIKE = 0.85  # similarity of a misspelled name


@dataclass(frozen=True, slots=True)
class SettingMismatch:
    """A setting that does not match the receiver's contract."""

    setting: str
    words: str
    is_hint: bool = False
    """Whether delivery can work nevertheless."""

    def __str__(self) -> str:
        """Return the setting and its problem."""
        return f"{self.setting}: {'hint: ' if self.is_hint else ''}{self.words}"


def find_mismatches(contract: Contract, settings: Any) -> list[SettingMismatch]:
    """Return the settings that do not match the contract of their template's receiver.

    A requirement is checked against the setting of the same name. A channel without that setting
    handles it by itself.
    """
    if contract.channel not in (None, settings.plugin):
        message = f"{settings.plugin!r} cannot deliver to {contract.name}"
        return [SettingMismatch("plugin", f'{message}; set plugin = "{contract.channel}"')]
    return [
        *_missing_secrets(contract, settings),
        *_missing_headers(contract, settings),
        *_open_url(contract, settings),
    ]


def _missing_secrets(contract: Contract, settings: Any) -> Iterator[SettingMismatch]:
    given = getattr(settings, "body_secrets", None)
    if not isinstance(given, Mapping):
        return
    for name, variable in contract.body_secrets.items():
        if name not in given:
            others = given.keys() - contract.body_secrets.keys()
            message = _describe_missing(contract, name, others)
            yield SettingMismatch(
                "body_secrets",
                message or _describe_required(contract, "body_secrets", name, variable),
            )


def _missing_headers(contract: Contract, settings: Any) -> Iterator[SettingMismatch]:
    """Yield the missing headers; header names are case-insensitive (RFC 9110 section 5.1)."""
    given = getattr(settings, "headers", None)
    if not isinstance(given, Mapping):
        return
    known = {name.lower() for name in contract.headers}
    others = [name for name in given if name.lower() not in known]
    if contract.headers_are_chosen and others:
        return
    names = {name.lower() for name in given}
    for name, variable in contract.headers.items():
        if name.lower() in names:
            continue
        if misspelt := _describe_missing(contract, name, others):
            yield SettingMismatch("headers", misspelt)
            continue
        # some receivers accept credentials in more than one way
        is_hint = contract.headers_are_chosen or any(map(is_secret_name, others))
        yield SettingMismatch(
            "headers", _describe_required(contract, "headers", name, variable), is_hint
        )


def _open_url(contract: Contract, settings: Any) -> Iterator[SettingMismatch]:
    if contract.secret_url and getattr(settings, "secret_url", contract) is None:
        message = f"it is in plain text, and anyone who knows it can post to {contract.name}"
        yield SettingMismatch(
            "url", f'{message}; use {{ env = "{contract.secret_url}" }}', is_hint=True
        )


def _describe_missing(contract: Contract, name: str, others: Collection[str]) -> str | None:
    """Return the problem if one of the other names is probably a misspelling."""
    by_lower = {other.lower(): other for other in others}
    alike = get_close_matches(name.lower(), by_lower, n=1, cutoff=_ALIKE)
    if not alike:
        return None
    found = f"found {by_lower[alike[0]]!r}, but {contract.name} requires {name!r}"
    return f"{found}; did you mean {name!r}?"


def _describe_required(contract: Contract, setting: str, name: str, variable: str) -> str:
    example = f'{setting} = {{ {name} = {{ env = "{variable}" }} }}'
    return f"{contract.name} requires {name!r}, which is missing; add {example}"


if TYPE_CHECKING:
    from jsonschema import ValidationError


def find_violations(contract: Contract, content: bytes, part: str = BODY) -> list[str]:
    """Return the contract violations of a part, with their places; empty if there are none.

    The number is limited. A body that is not JSON is a violation; any other part must not be empty.
    """
    violations = []
    if len(content) > contract.largest:
        size = f"{len(content):,} bytes"
        violations.append(f"it has {size}; {contract.name} accepts {contract.largest:,}")
    if part == BODY:
        return violations + _find_schema_breaches(contract, content)
    return violations if content.strip() else ["it is empty"]


def find_all_violations(contract: Contract, parts: Mapping[str, bytes]) -> list[str]:
    """Return the contract violations of all parts, with the part's name."""
    return [
        violation if part == BODY else f"{part}: {violation}"
        for part, content in parts.items()
        for violation in find_violations(contract, content, part)
    ]


def _find_schema_breaches(contract: Contract, body: bytes) -> list[str]:
    from jsonschema import Draft202012Validator  # slow import

    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return [f"it is not JSON: {error}"]
    found = Draft202012Validator(contract.body).iter_errors(document)
    errors = sorted(found, key=lambda error: list(map(str, error.absolute_path)))
    return list(map(_format_breach, errors[:_MOST]))


def _format_breach(error: ValidationError) -> str:
    place = "/".join(map(str, error.absolute_path)) or "the body"
    return f"{place}: {_shorten_message(error.message)}"


def _shorten_message(message: str) -> str:
    """Shorten a message in the middle: it begins with the value and ends with the problem."""
    if len(message) <= _SHOWN:
        return message
    return f"{message[: _SHOWN // 2]} … {message[-_SHOWN // 2 :]}"
