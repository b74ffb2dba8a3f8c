"""Validation of settings and rendered output against a contract."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import orjson

from tocsin.fields import is_secret_name
from tocsin.model import Contract

_ALIKE = 0.85  # of two names, one of which is probably the other, misspelt


@dataclass(frozen=True, slots=True)
class SettingMismatch:
    """A setting that is not as the receiver wants it."""

    setting: str
    words: str
    is_hint: bool = False
    """Whether it can work all the same."""

    def __str__(self) -> str:
        """Return where it is and what it is."""
        return f"{self.setting}: {'hint: ' if self.is_hint else ''}{self.words}"


def find_mismatches(contract: Contract, settings: Any) -> list[SettingMismatch]:
    """Return in what settings do not fit the receiver of their template; nothing if they do.

    What a contract names is looked for in the setting of the same name. A channel without one
    sees to that by itself.
    """
    if contract.channel not in (None, settings.plugin):
        words = f"{settings.plugin!r} cannot bring {contract.name} anything"
        return [SettingMismatch("plugin", f'{words}; set plugin = "{contract.channel}"')]
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
            words = _describe_missing(contract, name, others)
            yield SettingMismatch(
                "body_secrets",
                words or _describe_required(contract, "body_secrets", name, variable),
            )


def _missing_headers(contract: Contract, settings: Any) -> Iterator[SettingMismatch]:
    """Yield the headers that are not there; their names have no case (RFC 9110 section 5.1)."""
    given = getattr(settings, "headers", None)
    if not isinstance(given, Mapping):
        return
    known = {name.lower() for name in contract.headers}
    others = [name for name in given if name.lower() not in known]
    if contract.headers_are_chosen and others:
        return
    there = {name.lower() for name in given}
    for name, variable in contract.headers.items():
        if name.lower() in there:
            continue
        if misspelt := _describe_missing(contract, name, others):
            yield SettingMismatch("headers", misspelt)
            continue
        # Some receivers know more than one way to be shown a credential
        is_hint = contract.headers_are_chosen or any(map(is_secret_name, others))
        yield SettingMismatch(
            "headers", _describe_required(contract, "headers", name, variable), is_hint
        )


def _open_url(contract: Contract, settings: Any) -> Iterator[SettingMismatch]:
    if contract.secret_url and getattr(settings, "secret_url", contract) is None:
        words = f"whoever knows it can post to {contract.name}, and it is written out"
        yield SettingMismatch(
            "url", f'{words}; give {{ env = "{contract.secret_url}" }}', is_hint=True
        )


def _describe_missing(contract: Contract, name: str, others: Collection[str]) -> str | None:
    """Return what is wrong where one of the others is the name, misspelt."""
    by_lower = {other.lower(): other for other in others}
    alike = get_close_matches(name.lower(), by_lower, n=1, cutoff=_ALIKE)
    if not alike:
        return None
    found = f"found {by_lower[alike[0]]!r}, and {contract.name} wants {name!r}"
    return f"{found}; did you mean {name!r}?"


def _describe_required(contract: Contract, setting: str, name: str, variable: str) -> str:
    example = f'{setting} = {{ {name} = {{ env = "{variable}" }} }}'
    return f"{contract.name} wants {name!r}, which is missing; give {example}"


if TYPE_CHECKING:
    from jsonschema import ValidationError

BODY = "body"
"""The part that is JSON."""
_MOST = 20
_SHOWN = 200


def find_breaches(contract: Contract, content: bytes, part: str = BODY) -> list[str]:
    """Return in what a part is not what the receiver takes, each with its place; nothing if it is.

    So many at most. A body that is no JSON is one of them; any other part has to say something.
    """
    breaches = []
    if len(content) > contract.largest:
        size = f"{len(content):,} bytes"
        breaches.append(f"it has {size}; {contract.name} takes {contract.largest:,}")
    if part == BODY:
        return breaches + _find_schema_breaches(contract, content)
    return breaches if content.strip() else ["it is empty"]


def find_all_breaches(contract: Contract, parts: Mapping[str, bytes]) -> list[str]:
    """Return in what any of the parts is not what the receiver takes, with the part's name."""
    return [
        breach if part == BODY else f"{part}: {breach}"
        for part, content in parts.items()
        for breach in find_breaches(contract, content, part)
    ]


def _find_schema_breaches(contract: Contract, body: bytes) -> list[str]:
    from jsonschema import Draft202012Validator  # which takes its time to be imported

    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return [f"it is not JSON: {error}"]
    found = Draft202012Validator(contract.body).iter_errors(document)
    errors = sorted(found, key=lambda it: list(map(str, it.absolute_path)))
    return list(map(_format_breach, errors[:_MOST]))


def _format_breach(error: ValidationError) -> str:
    place = "/".join(map(str, error.absolute_path)) or "the body"
    return f"{place}: {_shorten_message(error.message)}"


def _shorten_message(message: str) -> str:
    """Return a message with the middle left out: what was found comes first, what is wrong last."""
    if len(message) <= _SHOWN:
        return message
    return f"{message[: _SHOWN // 2]} … {message[-_SHOWN // 2 :]}"
