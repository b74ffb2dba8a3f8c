"""Entities in a single value without context."""

from __future__ import annotations

import re
from collections.abc import Callable

from tocsin.model import Entity, EntityKind
from tocsin.observables.field_semantics import FieldMeaning, classify_field
from tocsin.observables.field_values import parse_field_value
from tocsin.observables.results import NOTHING, Finds, make_finds
from tocsin.observables.shapes import (
    is_cloud_resource,
    is_cve,
    is_hash,
    is_network,
    is_plain_account,
    is_program,
    is_technique,
    is_unix_path,
    is_windows_path,
    parse_account,
    parse_email,
    parse_ip,
    parse_name,
    unescape_path,
)
from tocsin.observables.urls import parse_url_entities

_NUMBER = r"(?:[A-Za-z_]\w{0,30}=)?[\[(:]?[+-]?\d+(?:[.:/-]\d+){0,2}[%)\].:]*"
_DULL = rf"(?:{_NUMBER}|\[\d\d/[A-Za-z]{{3}}/\d{{4}}:\d\d:\d\d:\d\d|0[Xx][0-9A-Fa-f]{{1,16}})"
"""Numbers, dates, and fields with such values, which change with every line of a log."""

_DULL_WORD = re.compile(_DULL, re.ASCII)
_DULL_OR_NOT = re.compile(rf"^(?:{_DULL}$|(.+))", re.ASCII | re.MULTILINE)
"""A line, which is in the group unless it is dull."""

_KEY = re.compile(r"[\w.$-]{1,64}")
_KEY_AND_VALUE = re.compile(r"([\w.$-]{1,64}):(.+)", re.DOTALL)
_BRACKETED_IP = re.compile(r"\[([0-9a-f:.%a-z]{2,60})\](?::\d+)?", re.IGNORECASE)
_ATOM = re.compile(r"([\w.-]+)([({]?)")
_PRODUCT = re.compile(r"[A-Z][A-Za-z]+")
_BEFORE_URL = re.compile(r"([\w.-]{4,253}):[a-z][a-z0-9+.-]{1,20}://", re.IGNORECASE)
_NESTED = 8  # fields in fields, at most


def blank_dull_words(words: list[str]) -> list[str]:
    """Return words without line breaks, with an empty text in place of each dull word.

    All are matched at once, since a call for each would take longer.
    """
    return _DULL_OR_NOT.findall("\n".join(words))


def read_value(core: str, *, certain: bool = False) -> Finds:
    """Return the entities in a word without surrounding punctuation.

    Names in it are `certain` to be network names if it was defanged.
    """
    if not core or _DULL_WORD.fullmatch(core):
        return NOTHING
    if core.startswith(("/", "~/", "arn:")):
        return _rooted(core)
    core = core.removeprefix("*.")
    for mark, reader in _READERS:
        if mark in core:
            found = reader(core, certain)
            if found is not None:
                return found
    return _atoms(core, certain)


def _url(core: str, _certain: bool) -> Finds | None:
    before = _BEFORE_URL.match(core)
    return (read_value(before[1]) if before else NOTHING) | parse_url_entities(core)


def _assignment(core: str, certain: bool) -> Finds | None:
    key, _, value = core.partition("=")
    if not _KEY.fullmatch(key) or value.count("=") > _NESTED:
        return None
    return _of_key(classify_field(key), value, certain)


def _of_key(meaning: FieldMeaning | None, value: str, certain: bool) -> Finds:
    value = value.strip("()[]{},;")
    found = parse_field_value(meaning, value) if meaning else None
    return read_value(value, certain=certain) if found is None else found


def read_alphanumeric(word: str) -> Finds:
    """Return the finds in a word of letters and digits."""
    if is_hash(word):
        return make_finds(Entity(EntityKind.FILE_HASH, word))
    return make_finds(word) if is_technique(word) else NOTHING


def _windows(core: str, _certain: bool) -> Finds | None:
    core = unescape_path(core)
    if is_windows_path(core):
        return make_finds(Entity(EntityKind.FILE, core))
    account = parse_account(core)
    if account is None or not is_plain_account(account):
        return NOTHING
    return make_finds(Entity(EntityKind.USER, account))


def _email(core: str, _certain: bool) -> Finds | None:
    address = parse_email(core.removeprefix("mailto:").partition(":")[0])
    return make_finds(Entity(EntityKind.EMAIL, address)) if address else None


def _rooted(core: str) -> Finds:
    if is_unix_path(core):
        return make_finds(Entity(EntityKind.FILE, core))
    if is_cloud_resource(core):
        return make_finds(Entity(EntityKind.CLOUD_RESOURCE, core))
    return NOTHING


def _slashes(core: str, certain: bool) -> Finds | None:
    address = parse_ip(core)
    if address:
        return make_finds(Entity(EntityKind.IP, address))
    if core.count("/") > _NESTED:
        return None
    return NOTHING if is_network(core) else _pair(core, certain)


def _pair(core: str, certain: bool) -> Finds:
    """Read `name/other` and `other/name`, except versions of products."""
    first, _, second = core.partition("/")
    found = read_value(first, certain=certain or first.count(".") > 1)
    if found or (_PRODUCT.fullmatch(first) and ":" not in second):
        return found
    return (
        exclude_kinds(read_value(second), *set(EntityKind) - {EntityKind.IP}) if second else NOTHING
    )


def exclude_kinds(finds: Finds, *kinds: str) -> Finds:
    """Return the finds without these kinds."""
    return {f: None for f in finds if isinstance(f, str) or f.kind not in kinds}


def _colons(core: str, certain: bool) -> Finds | None:
    address = parse_ip(core) or _bracketed_ip(core)
    if address:
        return make_finds(Entity(EntityKind.IP, address))
    pair = _KEY_AND_VALUE.fullmatch(core)
    if pair is None or "::" in core or core.count(":") > _NESTED:
        return None
    key, value = pair.groups()
    meaning = classify_field(key)
    return _of_key(meaning, value, certain) if meaning or key.isalpha() else None


def _bracketed_ip(core: str) -> str | None:
    inner = _BRACKETED_IP.fullmatch(core if core[0] == "[" else f"[{core}")
    return parse_ip(inner[1]) if inner else None


def _atoms(core: str, certain: bool) -> Finds:
    """Return the finds in the names and numbers of a word."""
    found: Finds = {}
    for match in _ATOM.finditer(core):
        before = core[match.start() - 1] if match.start() else ""
        if before not in {"$", "@", "*", "~", "%"}:
            found |= _atom(match[1].strip("-."), certain, called=bool(match[2]))
    return found


def _atom(text: str, certain: bool, *, called: bool) -> Finds:
    if text.isalnum():
        return read_alphanumeric(text)
    if text[:1].isdigit():
        addresses = [parse_ip(part) for part in text.split("-", 2)]
        if any(addresses):
            return make_finds(*(Entity(EntityKind.IP, address) for address in addresses if address))
    if is_cve(text):
        return make_finds(Entity(EntityKind.CVE, text))
    if is_technique(text):
        return make_finds(text)
    if is_program(text):
        return make_finds(Entity(EntityKind.PROCESS, text))
    named = None if called else parse_name(text, certain=certain)
    return make_finds(named) if named else NOTHING


_READERS: tuple[tuple[str, Callable[[str, bool], Finds | None]], ...] = (
    ("://", _url),
    ("=", _assignment),
    ("\\", _windows),
    ("@", _email),
    ("/", _slashes),
    (":", _colons),
)
"""Readers by the mark that a word contains, in the order in which they are tried."""
