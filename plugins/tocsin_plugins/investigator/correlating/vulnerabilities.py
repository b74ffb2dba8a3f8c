"""Vulnerabilities that are known to be exploited."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import EntityKind, Severity
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlating.found import FindingDraft
from tocsin_plugins.investigator.wording import say, shown

_TAGS = frozenset({"known-exploited", "exploited", "kev"})


def find_exploited_cves(case: Case) -> Iterator[FindingDraft]:
    """Yield each CVE of which a source says that it is exploited."""
    for entity in case.entities:
        if entity.kind is not EntityKind.CVE:
            continue
        telling = [it for it in case.find_opinions(entity) if _TAGS & set(it.enrichment.tags)]
        if telling:
            yield FindingDraft(
                title=f"{shown(entity.value)} is known to be exploited",
                severity=Severity.HIGH,
                strength=1.0,
                statements=tuple(
                    say(
                        f"according to {it.called}: {shown(it.enrichment.summary, 300)}",
                        it.step,
                    )
                    for it in telling
                ),
                entities=(entity,),
                incidents=tuple(record.number for record in case.incidents_with(entity)),
            )
