"""Pseudonyms of erased values: each is valid for its kind of entity."""

from __future__ import annotations

from ipaddress import IPv6Address

from tocsin.model import EntityKind

_DISCARD = int(IPv6Address("100::"))  # RFC 6666: leads nowhere
_FORMS = {
    EntityKind.EMAIL: "{word}@erased.invalid",
    EntityKind.MAILBOX: "{word}@erased.invalid",
    EntityKind.DOMAIN: "{word}.invalid",
    EntityKind.URL: "https://{word}.invalid/",
    EntityKind.FILE_HASH: "{digest}",
    EntityKind.CVE: "CVE-0000-{number}",
}


def build_pseudonym(kind: EntityKind, digest: str) -> str:
    """Return the pseudonym of a value, which only the keyed digest decides."""
    if kind is EntityKind.IP:
        return str(IPv6Address(_DISCARD + int(digest[:16], 16)))
    form = _FORMS.get(kind, "{word}")
    return form.format(word=f"erased-{digest[:12]}", digest=digest, number=int(digest[:8], 16))
