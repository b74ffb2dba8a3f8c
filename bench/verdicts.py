"""Precision of verdicts and recommendations on labeled scenes.

A scene is what SIEMs report, in their own shape, and what an analyst would conclude from it: the
verdicts that are right, whom to block, isolate or reset, and whom never, since it is a victim.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.scene_records import build_events, build_incident
from tocsin import (
    Action,
    Disposition,
    EnricherSource,
    Enrichment,
    Entity,
    EntityKind,
    Environment,
    IncidentRecord,
    ProviderSource,
    Report,
    Sources,
    Tools,
)
from tocsin.incidents.storage.merge import fold_versions
from tocsin.observables import EnvironmentSettings
from tocsin.testing.investigation import investigate
from tocsin.testing.query_client import ScriptedQueryClient
from tocsin_plugins.investigator import DefaultInvestigator

SCENES = Path(__file__).parent / "scenes"
HELD_OUT = "held-out"
"""The scenes that the rules were never adapted to."""
_WITH_EVENTS = frozenset({"crowdsec", "ocsf", "suricata"})
"""Shapes whose records the provider's event search returns as well."""


@dataclass(frozen=True)
class Scene:
    """A labeled scene."""

    group: str
    """The file that it is from."""
    label: Mapping[str, Any]
    """What happens in it, and what is right."""


def load_scenes() -> list[Scene]:
    """Return all scenes, file by file."""
    return [
        Scene(path.stem, label)
        for path in sorted(SCENES.glob("*.toml"))
        for label in tomllib.loads(path.read_text())["scene"]
    ]


async def investigate_scene(scene: Scene) -> Report:
    """Return the report on a scene, by default on all its incidents."""
    label, shape = scene.label, scene.label["shape"]
    records = list(label["records"])
    given = [build_incident(shape, number, record) for number, record in enumerate(records, 1)]
    incidents = [
        _to_record(number, shape, incident)
        for number, incident in enumerate(fold_versions(given).values(), 1)
    ]
    own = records if shape in _WITH_EVENTS and shape != "ocsf" else []
    logged = [*own, *label.get("events", ())]
    events = [
        event
        for number, record in enumerate(logged)
        for event in build_events(shape, number, record)
    ]
    opinions: dict[str, list[Enrichment]] = {}
    for opinion in label.get("opinions", ()):
        opinions.setdefault(opinion["by"], []).append(_to_enrichment(opinion))
    settings = EnvironmentSettings.model_validate(label.get("environment", {}))
    client = ScriptedQueryClient(
        incidents=incidents,
        events={shape: events} if shape in _WITH_EVENTS else {},
        enrichments=opinions,
        environment=Environment(settings),
        sources=_build_sources(shape, opinions, settings),
    )
    investigator = DefaultInvestigator(
        DefaultInvestigator.Settings(), Tools(name="investigator", http=None, clock=None, log=None)
    )
    numbers = ", ".join(str(record.number) for record in incidents)
    return await investigate(investigator, client, label.get("query", f"incidents {numbers}"))


def _build_sources(shape: str, opinions: Iterable[str], settings: EnvironmentSettings) -> Sources:
    provider = ProviderSource(name=shape, answers_events=shape in _WITH_EVENTS)
    kinds = tuple(EntityKind)
    enrichers = (EnricherSource(name=name, kinds=kinds, online=False) for name in sorted(opinions))
    return Sources(
        providers=(provider,),
        enrichers=tuple(enrichers),
        names_networks=Environment(settings).names_networks,
    )


def _to_record(number: int, provider: str, incident: Any) -> IncidentRecord:
    names = ("external_id", "title", "description", "severity", "status", "occurred_at")
    names = (*names, "severity_assumed", "techniques", "entities", "sources", "targets", "alerts")
    members = {name: getattr(incident, name) for name in names}
    return IncidentRecord(
        number=number,
        provider=provider,
        updated_at=incident.occurred_at,
        alert_count=len(incident.alerts),
        **members,
    )


def _to_enrichment(opinion: Mapping[str, Any]) -> Enrichment:
    return Enrichment(
        entity=Entity(EntityKind(opinion["kind"]), opinion["value"]),
        summary=f"listed as {opinion['is']}",
        disposition=Disposition(opinion["is"]),
        tags=tuple(opinion.get("tags", ())),
    )


_KINDS = {
    "block": re.compile(r"(?:Block|Verify that) (?P<who>.*?)(?: stays blocked)?"),
    "isolate": re.compile(r"Isolate (?P<who>.*?)(?: and collect .*)?"),
    "reset": re.compile(r"Reset the password of (?P<who>.*) and end its sessions"),
    "patch": re.compile(r"Find and patch systems with (?P<who>.*?)(?:, starting with .*)?"),
    "collect": re.compile(r"Collect memory and logs from (?P<who>.*)"),
    "close": re.compile(r"Close (?P<who>incident [0-9]+)"),
    "tune": re.compile(r"Tune the rule (?P<who>.*)"),
    "watch": re.compile(r"Watch (?P<who>[^,]*)"),
    "check": re.compile(r"(?:Check|Watch) (?P<who>.*)"),
    "ask": re.compile(r"Ask (?P<who>.*)"),
}
"""Recommendations by kind. To watch an account that is under attack is a check, not a measure."""
_AGAINST = frozenset({"block", "isolate", "collect", "watch"})
_LABELS = {
    "block": ("block", "optional"),
    "isolate": ("isolate", "optional_isolate"),
    "collect": ("isolate", "optional_isolate"),
    "reset": ("reset",),
    "patch": ("patch",),
}


def classify_action(action: Action) -> tuple[str, str]:
    """Return the kind of a recommendation and its subject. Raises ValueError for an unknown one."""
    for kind, pattern in _KINDS.items():
        if match := pattern.fullmatch(action.text.rstrip(".")):
            return kind, match["who"]
    raise ValueError(f"unknown recommendation: {action.text}")


def _names(subject: str, values: Iterable[str]) -> bool:
    """Return whether a subject, such as `the address 192.0.2.1`, is one of these values."""
    return any(subject.lower().endswith(f" {value.lower()}") for value in values)


def is_right(scene: Scene, kind: str, subject: str) -> bool:
    """Return whether a recommendation is right for a scene."""
    if names := _LABELS.get(kind):
        return _names(subject, (value for name in names for value in scene.label.get(name, ())))
    if kind in ("close", "tune"):
        return bool(scene.label.get("close"))
    return set(scene.label["verdict"]) != {"benign"} and not blames_victim(scene, kind, subject)


def blames_victim(scene: Scene, kind: str, subject: str) -> bool:
    """Return whether a recommendation is directed against a victim of a scene."""
    words = subject.lower().replace(",", " ").split()
    return kind in _AGAINST and any(
        victim.lower() in words for victim in scene.label.get("victims", ())
    )


@dataclass
class Tally:
    """Results over scenes."""

    verdicts: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """Scenes by verdict, and whether it was right."""
    actions: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """Recommendations by kind, and whether they were right."""
    due: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """Recommendations that a scene needs, by kind, and whether they were made."""
    wrong: list[str] = field(default_factory=list)
    """Descriptions of what was wrong."""
    blamed: list[str] = field(default_factory=list)
    """Recommendations against victims."""

    def add(self, scene: Scene, report: Report) -> None:
        """Add the report on a scene."""
        name = scene.label["name"]
        right = report.verdict.value in scene.label["verdict"]
        self.verdicts[report.verdict.value, right] += 1
        if not right:
            self.wrong.append(f"{name}: {report.verdict.value} ({report.risk_score:g})")
        made = [classify_action(action) for action in report.actions]
        for (kind, subject), action in zip(made, report.actions, strict=True):
            is_good = is_right(scene, kind, subject)
            self.actions[kind, is_good] += 1
            if not is_good:
                self.wrong.append(f"{name}: {action.text} {action.reason.text}")
            if blames_victim(scene, kind, subject):
                self.blamed.append(f"{name}: {action.text}")
        for kind in ("block", "isolate", "reset", "patch"):
            for value in scene.label.get(kind, ()):
                met = any(one == kind and _names(subject, [value]) for one, subject in made)
                self.due[kind, met] += 1
                if not met:
                    self.wrong.append(f"{name}: no {kind} of {value}")


async def tally_scenes(scenes: Iterable[Scene]) -> Tally:
    """Return the results of investigating scenes."""
    tally = Tally()
    for scene in scenes:
        tally.add(scene, await investigate_scene(scene))
    return tally


def run(_rounds: int) -> None:
    """Print the precision of verdicts and recommendations; the same in every round."""
    scenes = load_scenes()
    groups = {
        "all scenes": scenes,
        "scenes used for tuning": [scene for scene in scenes if scene.group != HELD_OUT],
        "held-out scenes": [scene for scene in scenes if scene.group == HELD_OUT],
    }
    for name, members in groups.items():
        _report(name, len(members), asyncio.run(tally_scenes(members)))


def _report(name: str, count: int, tally: Tally) -> None:
    print(f"\n| {name} ({count}) | right | wrong | precision | needed | made |")
    print("|---|---:|---:|---:|---:|---:|")
    for label, counts in (("verdict", tally.verdicts), ("recommendation", tally.actions)):
        kinds = dict.fromkeys(kind for kind, _ in sorted(counts))
        for kind in (None, *kinds):
            right, wrong = (
                sum(
                    n
                    for (one, good), n in counts.items()
                    if good is is_good and kind in (None, one)
                )
                for is_good in (True, False)
            )
            title = f"**every {label}**" if kind is None else f"{label}: {kind}"
            due = "|  |  |"
            if (
                kind
                and label == "recommendation"
                and (tally.due[kind, True] or tally.due[kind, False])
            ):
                needed = tally.due[kind, True] + tally.due[kind, False]
                due = f"| {needed} | {tally.due[kind, True]} |"
            precision = f"{right / (right + wrong):.3f}" if right + wrong else ""
            print(f"| {title} | {right} | {wrong} | {precision} {due}")
    print(f"\nRecommendations against a victim: {len(tally.blamed)}")
