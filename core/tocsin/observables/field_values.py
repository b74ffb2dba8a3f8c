"""The value of a field whose name says what it holds."""

from __future__ import annotations

import re
from functools import lru_cache

from tocsin.model import Entity, EntityKind
from tocsin.observables.found import NOTHING, Finds, finds_of
from tocsin.observables.keys import Meaning
from tocsin.observables.shapes import (
    account_of,
    base_name,
    email_of,
    ip_of,
    is_cloud_resource,
    is_file_name,
    is_path,
    is_program,
    name_of,
    unescaped_path,
)
from tocsin.observables.suffixes import ascii_name
from tocsin.observables.vocabulary import NOBODY

_USER = re.compile(r"[\w][\w.@:$+-]{0,127}")
_UID = re.compile(r"\(uid=\d{1,10}\)$")  # as PAM names whose session it is: root(uid=0)
_HOST = re.compile(r"[^\W_](?:[\w-]{0,61}[^\W_])?(?:\.[\w-]{1,63}){0,20}\.?")
_PROCESS = re.compile(r"[\w(+.-][\w.+()/@-]{0,127}")


@lru_cache(maxsize=16_384)
def finds_in(meaning: Meaning, value: str) -> Finds | None:
    """Return the entities that a value is, given what it means.

    Nothing, if it says that there is no value; None, if it cannot be what the name says: then its
    shape must tell.
    """
    if value.lower() in NOBODY or meaning is Meaning.OPAQUE:
        return NOTHING
    return _READERS[meaning](value)


def _user(value: str) -> Finds | None:
    value = _UID.sub("", value)
    account = account_of(value)
    if account is not None:
        return finds_of(Entity(EntityKind.USER, account))
    if ip_of(value) or value.isdecimal() or not _USER.fullmatch(value):
        return None
    address = ip_of(value.rpartition("@")[2])  # root@192.0.2.7
    return finds_of(Entity(EntityKind.USER, value), *_ips(address))


def _ips(address: str | None) -> list[Entity]:
    return [Entity(EntityKind.IP, address)] if address else []


def _host(value: str) -> Finds | None:
    value = value.rpartition("\\")[2]
    if ip_of(value) or value.isdecimal() or not _HOST.fullmatch(value):
        return None
    name = ascii_name(value)
    return finds_of(Entity(EntityKind.HOST, name)) if name else None


def _remote(value: str) -> Finds | None:
    named = name_of(value, certain=True)
    return finds_of(named) if named else _host(value)


def _domain(value: str) -> Finds | None:
    named = name_of(value, certain=True)
    return finds_of(named) if named else None


def _process(value: str) -> Finds | None:
    value = unescaped_path(value)
    name = base_name(value)
    if name and is_path(value):
        return finds_of(Entity(EntityKind.FILE, value), Entity(EntityKind.PROCESS, name))
    if value.isdecimal() or not _PROCESS.fullmatch(value):
        return None
    return finds_of(Entity(EntityKind.PROCESS, value))


def _image(value: str) -> Finds | None:
    return _process(value) if is_path(unescaped_path(value)) or is_program(value) else None


def _file(value: str) -> Finds | None:
    value = unescaped_path(value)
    if is_path(value) or is_file_name(value) or (value.startswith("/") and "." in value):
        return finds_of(Entity(EntityKind.FILE, value))
    return None


def _mailbox(value: str) -> Finds | None:
    address = email_of(value)
    return finds_of(Entity(EntityKind.MAILBOX, address)) if address else None


def _cloud_resource(value: str) -> Finds | None:
    return finds_of(Entity(EntityKind.CLOUD_RESOURCE, value)) if is_cloud_resource(value) else None


_READERS = {
    Meaning.USER: _user,
    Meaning.HOST: _host,
    Meaning.REMOTE: _remote,
    Meaning.DOMAIN: _domain,
    Meaning.PROCESS: _process,
    Meaning.IMAGE: _image,
    Meaning.FILE: _file,
    Meaning.MAILBOX: _mailbox,
    Meaning.CLOUD_RESOURCE: _cloud_resource,
}
