"""What the evidence of alerts names.

There are some fifty types of evidence, and more come; but what a member is called says what it
holds, whichever type it is of: https://learn.microsoft.com/graph/api/resources/security-alertevidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.microsoft.naming import entity_of, file, host, users
from tocsin_connectors.siem.records import child, text, texts

_DEEPEST = 8
_MEMBERS: Mapping[str, EntityKind] = {
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
_ACCOUNT = ("accountName", "userPrincipalName", "azureAdUserId")
"""Members that make an object an account, whose domain is one of Windows."""
_OF_CODE = "sha256ac"
"""Of Authenticode: the hash of what is signed in a file, and of no file."""


def named_by(evidence: Any) -> Iterator[Entity]:
    """Yield everything that a list of evidence names; what cannot be one is left out."""
    yield from _within(evidence, _DEEPEST)


def _within(content: Any, deepest: int) -> Iterator[Entity]:
    if isinstance(content, list):
        for item in content if deepest else ():
            yield from _within(item, deepest - 1)
    elif isinstance(content, dict):
        yield from _named(content)
        for value in content.values() if deepest else ():
            if isinstance(value, dict | list):
                yield from _within(value, deepest - 1)


def _named(thing: dict[str, Any]) -> Iterator[Entity]:
    """Yield what one object names by itself."""
    if any(name in thing for name in _ACCOUNT):
        yield from _account(thing)
        return
    yield from _machine(thing)
    yield from file(text(thing, "filePath"), text(thing, "fileName"))
    if image := text(child(thing, "imageFile"), "fileName"):
        yield Entity(EntityKind.PROCESS, image)
    for member, kind in _MEMBERS.items():
        for value in texts(thing, member):
            yield from entity_of(kind, value)
    if (text(thing, "algorithm") or _OF_CODE).casefold() != _OF_CODE:  # evidence that is a hash
        for value in texts(thing, "value"):
            yield from entity_of(EntityKind.FILE_HASH, value)


def _account(thing: dict[str, Any]) -> Iterator[Entity]:
    names = (text(thing, name) for name in ("accountName", "domainName", "userPrincipalName"))
    yield from users(*names)


def _machine(thing: dict[str, Any]) -> Iterator[Entity]:
    """Yield a machine by the name that the network knows it by."""
    name = text(thing, "deviceDnsName") or text(thing, "hostName")
    yield from host(name, text(thing, "dnsDomain"))
    yield from host(text(thing, "deviceName"))
