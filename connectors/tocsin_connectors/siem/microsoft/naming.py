"""What Microsoft's products call things, as entities; what names nothing is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.typed import typed

_FORMS = {
    EntityKind.DOMAIN: re.compile(r"[^/:@]+"),
    EntityKind.URL: re.compile(r"[^\s/]+/\S*"),  # some write it without its scheme
    EntityKind.USER: re.compile(r"(?!-\\-$).+"),  # Windows writes - for nobody
}
"""What a value has to look like, since columns and members may hold one kind or another."""
_PLACE = re.compile(r"([^\s/:@]+\.[^\s/:@]+)(?::\d{1,5})?")


def entity_of(kind: EntityKind, value: str) -> Iterator[Entity]:
    """Yield the entity of a kind that a value names.

    An address may stand for a machine's name, and either of them for a URL.
    """
    form = _FORMS.get(kind)
    if form is None or form.fullmatch(value):
        yield from (it for it in typed(kind, value) if it.value)  # of `.` nothing is left
    elif kind is EntityKind.URL:
        yield from _place(value)


def _place(value: str) -> Iterator[Entity]:
    """Yield the address or the domain that a value is, with a port or without."""
    if found := list(typed(EntityKind.IP, value)):
        yield from found
    elif place := _PLACE.fullmatch(value):
        yield from entity_of(EntityKind.DOMAIN, place[1])


def users(name: str | None, domain: str | None = None, upn: str | None = None) -> Iterator[Entity]:
    r"""Yield an account as each log calls it: `alice@example.com`, `EXAMPLE\alice`, or `alice`."""
    is_whole = {"@", "\\"} & set(name or "")
    if upn and "@" in upn:
        yield from entity_of(EntityKind.USER, upn)
    if name and domain and not is_whole:
        yield from entity_of(EntityKind.USER, f"{domain}\\{name}")
    elif name and (is_whole or "@" not in (upn or "")):
        yield from entity_of(EntityKind.USER, name)


def host(name: str | None, domain: str | None = None) -> Iterator[Entity]:
    """Yield a machine by its whole name, as far as it is told."""
    if name:
        whole = f"{name}.{domain}" if domain and "." not in name else name
        yield from entity_of(EntityKind.HOST, whole)


def file(folder: str | None, name: str | None) -> Iterator[Entity]:
    """Yield a file by its path, as far as it is told; `folder` may hold its name already."""
    if not name:
        return
    if not folder or folder.casefold() == name.casefold():
        yield Entity(EntityKind.FILE, name)
    elif folder.casefold().endswith(("\\" + name.casefold(), "/" + name.casefold())):
        yield Entity(EntityKind.FILE, folder)
    else:
        separator = "/" if "/" in folder and "\\" not in folder else "\\"
        yield Entity(EntityKind.FILE, folder.rstrip("\\/") + separator + name)
