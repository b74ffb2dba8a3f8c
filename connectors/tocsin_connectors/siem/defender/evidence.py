"""What the evidence of alerts names.

There are some fifty types of evidence, and more come; but what a member is called says what it
holds, whichever type it is of: https://learn.microsoft.com/graph/api/resources/security-alertevidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.microsoft.naming import (
    parse_entity,
    parse_file,
    parse_machine,
    parse_user,
)
from tocsin_connectors.siem.records import child, text, texts

_MAX_DEPTH = 8
_ENTITY_MEMBERS: Mapping[str, EntityKind] = {
    **dict.fromkeys(
        (
            "ipAddress",
            "ipInterfaces",
            "lastExternalIpAddress",
            "lastIpAddress",
            "senderIp",
            "sourceIpAddress",
            "destinationIpAddress",
        ),
        EntityKind.IP,
    ),
    **dict.fromkeys(("sha1", "sha256", "md5"), EntityKind.FILE_HASH),
    **dict.fromkeys(("url", "urls"), EntityKind.URL),
    **dict.fromkeys(("emailAddress", "sender", "fromEmailAddress"), EntityKind.EMAIL),
    **dict.fromkeys(("primaryAddress", "recipientEmailAddress", "recipient"), EntityKind.MAILBOX),
    **dict.fromkeys(
        ("resourceId", "amazonResourceId", "fullResourceName"), EntityKind.CLOUD_RESOURCE
    ),
    "domainName": EntityKind.DOMAIN,
}
_ACCOUNT_MEMBERS = ("accountName", "userPrincipalName", "azureAdUserId")
"""Members that make an object an account, whose domain is one of Windows."""
_AUTHENTICODE = "sha256ac"
"""Of Authenticode: the hash of what is signed in a file, and of no file."""


def find_entities(evidence: Any) -> Iterator[Entity]:
    """Yield everything that a list of evidence names; what cannot be one is left out."""
    yield from _find_nested(evidence, _MAX_DEPTH)


def _find_nested(content: Any, deepest: int) -> Iterator[Entity]:
    if isinstance(content, list):
        for item in content if deepest else ():
            yield from _find_nested(item, deepest - 1)
    elif isinstance(content, dict):
        yield from _find_named(content)
        for value in content.values() if deepest else ():
            if isinstance(value, dict | list):
                yield from _find_nested(value, deepest - 1)


def _find_named(thing: dict[str, Any]) -> Iterator[Entity]:
    """Yield what one object names by itself."""
    if any(name in thing for name in _ACCOUNT_MEMBERS):
        yield from _find_account(thing)
        return
    yield from _find_machine(thing)
    yield from parse_file(text(thing, "filePath"), text(thing, "fileName"))
    if image := text(child(thing, "imageFile"), "fileName"):
        yield Entity(EntityKind.PROCESS, image)
    for member, kind in _ENTITY_MEMBERS.items():
        for value in texts(thing, member):
            yield from parse_entity(kind, value)
    if (
        text(thing, "algorithm") or _AUTHENTICODE
    ).casefold() != _AUTHENTICODE:  # evidence that is a hash
        for value in texts(thing, "value"):
            yield from parse_entity(EntityKind.FILE_HASH, value)


def _find_account(thing: dict[str, Any]) -> Iterator[Entity]:
    names = (text(thing, name) for name in ("accountName", "domainName", "userPrincipalName"))
    yield from parse_user(*names)


def _find_machine(thing: dict[str, Any]) -> Iterator[Entity]:
    """Yield a machine by the name that the network knows it by."""
    name = text(thing, "deviceDnsName") or text(thing, "hostName")
    yield from parse_machine(name, text(thing, "dnsDomain"))
    yield from parse_machine(text(thing, "deviceName"))
