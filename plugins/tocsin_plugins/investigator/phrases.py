"""Phrases for entities, times and numbers in report sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from tocsin import Entity, EntityKind, EntityPattern, Statement

IS = {True: "is", False: "are"}
WAS = {True: "was", False: "were"}
"""Verbs by whether their subject is singular."""
_LONGEST = 120
_MOST_REFERENCES = 25
_CALLED = {
    EntityKind.IP: "the address",
    EntityKind.URL: "the URL",
    EntityKind.FILE_HASH: "the file hash",
    EntityKind.EMAIL: "the email address",
    EntityKind.CVE: "the vulnerability",
    EntityKind.CLOUD_RESOURCE: "the cloud resource",
}
_SEVERAL = {
    EntityKind.IP: "the addresses",
    EntityKind.FILE_HASH: "the file hashes",
    EntityKind.EMAIL: "the email addresses",
    EntityKind.CVE: "the vulnerabilities",
    EntityKind.MAILBOX: "the mailboxes",
    EntityKind.PROCESS: "the processes",
}
_ENRICHERS = {
    "abuseipdb": "AbuseIPDB",
    "attack": "MITRE ATT&CK",
    "cve": "the catalog of exploited vulnerabilities",
    "domains": "the domain name analysis",
    "greynoise": "GreyNoise",
    "history": "the history",
    "lists": "your lists",
    "misp": "MISP",
    "neighbourhood": "the graph",
    "networks": "the network lookup",
    "rdap": "RDAP",
    "virustotal": "VirusTotal",
}  # by plugin name; an enricher with another name in plugins.toml keeps that name


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Return text on one line, shortened and without unprintable characters."""
    line = " ".join(text[: 8 * longest].split())
    if not line.isprintable():
        line = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def name_entity(entity: Entity) -> str:
    """Return an entity for a sentence, such as `the user root`."""
    return f"{_CALLED.get(entity.kind, f'the {entity.kind.value}')} {shorten(entity.value)}"


def name_pattern(pattern: EntityPattern) -> str:
    """Return a pattern for a sentence, such as `the addresses 198.51.100.0/24`."""
    if pattern.bounds:
        return f"the addresses {pattern.text}"
    called = "users" if EntityKind.USER in pattern.kinds else "hosts and domains"
    return f"the {called} {shorten(pattern.text)}"


def join_names(values: Sequence[str], most: int = 5) -> str:
    """Return `a, b and c`, or `a, b and 7 more`."""
    if len(values) > most:
        values = [*values[: most - 1], f"{len(values) - most + 1} more"]
    if len(values) <= 1:
        return "".join(values)
    return f"{', '.join(values[:-1])} and {values[-1]}"


def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """Return `1 incident`, `3 incidents`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_time(moment: datetime) -> str:
    """Return a moment in UTC, to the second."""
    return moment.astimezone(UTC).isoformat(" ", "seconds").replace("+00:00", " UTC")


def join_entities(entities: Iterable[Entity], most: int = 5) -> str:
    """Return entities for a sentence, grouped by kind.

    For example: `the host web-1 and the users admin and root`.
    """
    alike: dict[EntityKind, list[str]] = {}
    for entity in entities:
        alike.setdefault(entity.kind, []).append(shorten(entity.value))
    return join_names([_name_group(kind, values, most) for kind, values in alike.items()])


def _name_group(kind: EntityKind, values: Sequence[str], most: int) -> str:
    if len(values) == 1:
        return name_entity(Entity(kind, values[0]))
    called = _CALLED.get(kind, f"the {kind.value}")
    several = _SEVERAL.get(kind, f"{called}s")
    return f"{several} {join_names(values, most)}"


def name_source(name: str) -> str:
    """Return a source for a sentence: `provider edge` for `provider:edge`."""
    kind, _, of = shorten(name).partition(":")
    return f"{kind} {of}" if of else f"the {kind}"


def name_incidents(numbers: Iterable[int], most: int = 10) -> str:
    """Return incidents for a sentence, such as `incidents 3 and 16`."""
    every = list(numbers)
    called = "incident" if len(every) == 1 else "incidents"
    return f"{called} {join_names([str(number) for number in every], most)}"


def name_enricher(enricher: str) -> str:
    """Return an enricher for a sentence."""
    return _ENRICHERS.get(enricher) or f"enricher {shorten(enricher)}"


def to_sentence(text: str) -> str:
    """Return text with a capital letter at the start and a period at the end."""
    text = f"{text[:1].upper()}{text[1:].rstrip('.')}"
    return text if text.endswith(("?", "!", "…")) else f"{text}."


def state(text: str, *evidence: str) -> Statement:
    """Return a statement with its evidence in order, each once, up to the maximum."""
    return Statement(to_sentence(text), tuple(sort_references(evidence)))


def sort_references(evidence: Iterable[str]) -> list[str]:
    """Return references, incidents first, by number, up to the maximum."""
    return sorted(set(evidence), key=_place)[:_MOST_REFERENCES]


def _place(reference: str) -> tuple[str, int, str]:
    kind, _, number = reference.partition(":")
    return kind, int(number) if number.isdecimal() else 0, reference
