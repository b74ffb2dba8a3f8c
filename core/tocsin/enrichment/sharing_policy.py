"""Sharing policy: entities that Tocsin may send to an online enricher."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from tocsin.enrichment.sanitizer import is_storable
from tocsin.hookspecs import Enricher
from tocsin.model import Entity, EntityKind, Marking
from tocsin.observables import Environment

UNSOUND = "not a valid IP address"
TOO_LONG = "its value is too long or contains characters that cannot be stored"
LOGIN = "it contains a user name or password, which no online enricher may receive"
UNREADABLE = "it is not a valid URL, so it is unknown what it reveals"
INTERNAL = "it is internal, and no online enricher may receive internal entities"
_BEGIN = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?[\s/\\]*", re.IGNORECASE)
_END = re.compile(r"[/\\?#]")


def find_refusals(
    enricher: Enricher, markings: Mapping[Entity, Marking], environment: Environment
) -> Mapping[Entity, str]:
    """Return the entities that may not be sent to the enricher, and the rule for each."""
    refused = {}
    for entity, marking in markings.items():
        reason = _entity_refusal(entity)
        if enricher.online and not reason:
            forbidden = _marking_refusal(marking, enricher.settings.limit)
            reason = forbidden or _privacy_refusal(entity, environment)
        if reason:
            refused[entity] = reason
    return refused


def _entity_refusal(entity: Entity) -> str | None:
    if not is_storable(entity):
        return TOO_LONG
    try:
        if entity.kind is EntityKind.IP:
            ip_address(entity.value)
    except ValueError:
        return UNSOUND
    return None


def _privacy_refusal(entity: Entity, environment: Environment) -> str | None:
    """Return why an entity is never sent, whatever its marking; None if it may be sent."""
    if environment.is_internal(entity):
        return INTERNAL
    return _url_refusal(entity.value) if entity.kind is EntityKind.URL else None


def _url_refusal(url: str) -> str | None:
    """Return why a URL reveals too much; None if it does not.

    Text before an @ in front of path, query and fragment is a login (RFC 3986, section 3.2.1), even
    if the scheme is missing or the number of slashes differs.
    """
    try:
        urlsplit(url).port  # noqa: B018 - raises ValueError for an invalid port
    except ValueError:
        return UNREADABLE
    host = _END.split(_BEGIN.sub("", url, count=1), maxsplit=1)[0]
    return LOGIN if "@" in unquote(host) else None


def _marking_refusal(marking: Marking, limit: Marking) -> str | None:
    """Return the limit that a marking exceeds, in words; None if it is within both."""
    if marking.tlp.rank > limit.tlp.rank:
        return _describe_excess("tlp", marking.tlp, limit.tlp)
    if marking.pap.rank > limit.pap.rank:
        return _describe_excess("pap", marking.pap, limit.pap)
    return None


def _describe_excess(protocol: str, marked: str, most: str) -> str:
    """Return the excess in words; the marking is the strictest among the entity's sources."""
    return (
        f"one of its sources is marked {protocol.upper()}:{marked.upper()}, "
        f"and this enricher accepts at most {most.upper()} (max_{protocol})"
    )
