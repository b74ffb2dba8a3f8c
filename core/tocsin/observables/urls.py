"""URLs and the entities in them."""

from __future__ import annotations

import re

from tocsin.model import Entity, EntityKind
from tocsin.observables.results import NOTHING, Finds, make_finds
from tocsin.observables.shapes import is_unix_path, parse_ip, parse_name

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,20}$", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^/?#\\]*")
_HOST_AND_PORT = re.compile(r"(\[[^\]]{2,60}\]|[^:\[\]]{1,253})(:\d{0,5})?")
_BARE_HOST = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)
_TECHNIQUE = re.compile(r"attack\.mitre\.org/techniques/(T\d{4})(?:/(\d{3}))?", re.ASCII)


def parse_url_entities(word: str) -> Finds:
    """Return the URL at the end of a word, and its host; nothing if it is not a URL.

    Scheme and host are in lower case, which is equivalent (RFC 3986, 6.2.2.1).
    """
    mark = word.index("://")
    scheme = _SCHEME.search(word[max(0, mark - 21) : mark])
    if scheme is None:
        return NOTHING
    rest = _without_end(word[mark + 3 :])
    if scheme[0].lower() == "file" and is_unix_path(rest):
        return make_finds(Entity(EntityKind.FILE, rest))
    authority = _AUTHORITY.match(rest)[0]  # type: ignore[index] # it also matches empty text
    userinfo, at, place = authority.rpartition("@")
    parsed = _HOST_AND_PORT.fullmatch(place)
    host = _host(parsed[1]) if parsed else None
    if parsed is None or host is None:
        return NOTHING
    shown = f"[{host.value}]" if ":" in host.value else host.value
    tail = rest[len(authority) :]
    url = f"{scheme[0].lower()}://{userinfo}{at}{shown}{parsed[2] or ''}{tail}"
    technique = _TECHNIQUE.search(url)
    found = make_finds(Entity(EntityKind.URL, url), host)
    return found | make_finds(".".join(filter(None, technique.groups()))) if technique else found


def _without_end(rest: str) -> str:
    """Drop punctuation at the end, and brackets that were opened before the URL."""
    rest = rest.rstrip(".,;:!?*")
    while rest and rest[-1] in ")]}" and rest.count(rest[-1]) > rest.count(_OPENING[rest[-1]]):
        rest = rest[:-1].rstrip(".,;:!?*")
    return rest


_OPENING = {")": "(", "]": "[", "}": "{"}


def _host(text: str) -> Entity | None:
    address = parse_ip(text.strip("[]"))
    if address is not None:
        return Entity(EntityKind.IP, address)
    named = parse_name(text, certain=True)
    if named is None and _BARE_HOST.fullmatch(text) and not text.isdecimal():
        return Entity(EntityKind.HOST, text.lower())
    return named
