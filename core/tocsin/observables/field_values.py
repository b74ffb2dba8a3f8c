"""Values of fields with a known meaning."""

from __future__ import annotations

import re
from functools import lru_cache

from tocsin.model import Entity, EntityKind
from tocsin.observables.field_semantics import FieldMeaning
from tocsin.observables.results import NOTHING, Finds, make_finds
from tocsin.observables.shapes import (
    base_name,
    is_cloud_resource,
    is_file_name,
    is_path,
    is_program,
    parse_account,
    parse_email,
    parse_ip,
    parse_name,
    unescape_path,
)
from tocsin.observables.suffixes import ascii_name
from tocsin.observables.vocabulary import NOBODY

_USER = re.compile(r"[\w][\w.@:$+-]{0,127}")
_UID = re.compile(r"\(uid=\d{1,10}\)$")  # the user of a session in PAM's form: root(uid=0)
_HOST = re.compile(r"[^\W_](?:[\w-]{0,61}[^\W_])?(?:\.[\w-]{1,63}){0,20}\.?")
_PROCESS = re.compile(r"[\w(+.-][\w.+()/@-]{0,127}")


@lru_cache(maxsize=16_384)
def parse_field_value(meaning: FieldMeaning, value: str) -> Finds | None:
    """Return the entities in a value, given the meaning of its field.

    Nothing if it is a placeholder for no value; None if it cannot have this meaning, so that its
    shape decides.
    """
    if value.lower() in NOBODY or meaning is FieldMeaning.OPAQUE:
        return NOTHING
    return _READERS[meaning](value)


@lru_cache(maxsize=4_096)
def parse_field_word(meaning: FieldMeaning, word: str) -> Finds | None:
    """Return the entities in a word of a text, without punctuation, as `parse_field_value` does."""
    value = word.strip("()[]{},;*").partition("(")[0].rstrip(".:?!")
    return parse_field_value(meaning, value)


def _user(value: str) -> Finds | None:
    value = _UID.sub("", value)
    account = parse_account(value)
    if account is not None:
        return make_finds(Entity(EntityKind.USER, account))
    if parse_ip(value) or value.isdecimal() or not _USER.fullmatch(value):
        return None
    address = parse_ip(value.rpartition("@")[2])  # root@192.0.2.7
    return make_finds(Entity(EntityKind.USER, value), *_ips(address))


def _ips(address: str | None) -> list[Entity]:
    return [Entity(EntityKind.IP, address)] if address else []


def _host(value: str) -> Finds | None:
    value = value.rpartition("\\")[2]
    if parse_ip(value) or value.isdecimal() or not _HOST.fullmatch(value):
        return None
    name = ascii_name(value)
    return make_finds(Entity(EntityKind.HOST, name)) if name else None


def _remote(value: str) -> Finds | None:
    named = parse_name(value, certain=True)
    return make_finds(named) if named else _host(value)


def _domain(value: str) -> Finds | None:
    named = parse_name(value, certain=True)
    return make_finds(named) if named else None


def _process(value: str) -> Finds | None:
    value = unescape_path(value)
    name = base_name(value)
    if name and is_path(value):
        return make_finds(Entity(EntityKind.FILE, value), Entity(EntityKind.PROCESS, name))
    if value.isdecimal() or not _PROCESS.fullmatch(value):
        return None
    return make_finds(Entity(EntityKind.PROCESS, value))


def _image(value: str) -> Finds | None:
    return _process(value) if is_path(unescape_path(value)) or is_program(value) else None


def _file(value: str) -> Finds | None:
    value = unescape_path(value)
    if is_path(value) or is_file_name(value) or (value.startswith("/") and "." in value):
        return make_finds(Entity(EntityKind.FILE, value))
    return None


def _mailbox(value: str) -> Finds | None:
    address = parse_email(value)
    return make_finds(Entity(EntityKind.MAILBOX, address)) if address else None


def _cloud_resource(value: str) -> Finds | None:
    return (
        make_finds(Entity(EntityKind.CLOUD_RESOURCE, value)) if is_cloud_resource(value) else None
    )


_READERS = {
    FieldMeaning.USER: _user,
    FieldMeaning.HOST: _host,
    FieldMeaning.REMOTE: _remote,
    FieldMeaning.DOMAIN: _domain,
    FieldMeaning.PROCESS: _process,
    FieldMeaning.IMAGE: _image,
    FieldMeaning.FILE: _file,
    FieldMeaning.MAILBOX: _mailbox,
    FieldMeaning.CLOUD_RESOURCE: _cloud_resource,
}
