"""Settings of the default investigator: bounds, weights and windows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tocsin import Duration, Investigator, Persona

DEEPEST = 3


class Weights(BaseModel):
    """[investigator.weights]: points that each kind of finding can add to the score or subtract.

    A finding contributes all these points, or a share that depends on its strength.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    severity: float = Field(
        default=35,
        ge=-100,
        le=100,
        description="Points for an incident with a severity of Critical.",
    )
    reputation: float = Field(
        default=25, ge=-100, le=100, description="Points for a malicious or suspicious entity."
    )
    agreement: float = Field(
        default=5, ge=-100, le=100, description="Points if several sources rate an entity as bad."
    )
    disagreement: float = Field(
        default=0, ge=-100, le=100, description="Points if sources disagree about an entity."
    )
    success_after_failures: float = Field(
        default=45, ge=-100, le=100, description="Points for a logon that succeeded after failures."
    )
    attack_sequence: float = Field(
        default=25, ge=-100, le=100, description="Points for a sequence of ATT&CK tactics."
    )
    callback: float = Field(
        default=20,
        ge=-100,
        le=100,
        description="Points if an internal entity contacted a malicious one.",
    )
    lateral_movement: float = Field(
        default=20,
        ge=-100,
        le=100,
        description="Points if one entity reached several internal hosts.",
    )
    exploited_cve: float = Field(
        default=20, ge=-100, le=100, description="Points for a vulnerability that is exploited."
    )
    shared_entity: float = Field(
        default=8, ge=-100, le=100, description="Points for an entity in several incidents."
    )
    recurrence: float = Field(
        default=6, ge=-100, le=100, description="Points for an entity that appears on several days."
    )
    burst: float = Field(
        default=4, ge=-100, le=100, description="Points for many records in a short time."
    )
    first_seen: float = Field(
        default=3, ge=-100, le=100, description="Points for an entity that is new to Tocsin."
    )
    rare_entity: float = Field(
        default=3, ge=-100, le=100, description="Points for an entity in few incidents."
    )
    benign_explanation: float = Field(
        default=-40,
        ge=-100,
        le=100,
        description="Points for an entity that sources rate as benign.",
    )
    background_noise: float = Field(
        default=-15,
        ge=-100,
        le=100,
        description="Points for an address that scans the whole internet.",
    )
    internal_only: float = Field(
        default=-15, ge=-100, le=100, description="Points if no external entity is involved."
    )

    def of(self, kind: str) -> float:
        """Return the weight of a rule, such as `shared-entity`."""
        weight: float = getattr(self, kind.replace("-", "_"))
        return weight


class Bounds(BaseModel):
    """[investigator.bounds.<persona>]: limits of an investigation."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    depth: int = Field(ge=0, le=DEEPEST, description="Maximum number of steps to related entities.")
    entities: int = Field(ge=1, le=5_000, description="Maximum number of entities to examine.")
    incidents: int = Field(ge=1, le=1_000, description="Maximum number of incidents to examine.")
    provider_calls: int = Field(
        ge=0, le=5_000, description="Maximum number of event searches in providers."
    )
    seconds: int = Field(ge=1, le=3_600, description="Time limit for all queries, in seconds.")
    timeline: int = Field(ge=1, le=1_000, description="Maximum number of lines in the timeline.")

    def deepened(self, times: int) -> Bounds:
        """Return the bounds, one step deeper and doubled as many times as specified."""
        if not times:
            return self
        wider = {
            name: min(value * 2, 5_000)
            for name, value in self.model_dump().items()
            if name in ("entities", "incidents", "provider_calls")
        }
        deeper = {"depth": min(self.depth + 1, DEEPEST)}
        return self.model_copy(update=wider | deeper).deepened(times - 1)


_DEFAULTS: Mapping[Persona, Mapping[str, int]] = {
    Persona.ANALYST: {
        "depth": 1,
        "entities": 100,
        "incidents": 50,
        "provider_calls": 40,
        "seconds": 120,
        "timeline": 50,
    },
    Persona.THREAT_HUNTER: {
        "depth": 3,
        "entities": 400,
        "incidents": 200,
        "provider_calls": 150,
        "seconds": 400,
        "timeline": 200,
    },
    Persona.INCIDENT_RESPONDER: {
        "depth": 2,
        "entities": 200,
        "incidents": 100,
        "provider_calls": 80,
        "seconds": 240,
        "timeline": 100,
    },
    Persona.EXECUTIVE: {
        "depth": 1,
        "entities": 50,
        "incidents": 50,
        "provider_calls": 20,
        "seconds": 60,
        "timeline": 10,
    },
}


class Settings(Investigator.Settings):
    """Settings of the default investigator."""

    default_window: Duration = Field(
        default=timedelta(days=7),
        gt=timedelta(0),
        description="Time range of an investigation if the question does not specify one.",
    )
    around_incidents: Duration = Field(
        default=timedelta(days=1),
        description="How far an investigation looks before and after the incidents that the "
        "question names. It never looks back more than one day.",
    )
    longest_window: Duration = Field(
        default=timedelta(days=90),
        gt=timedelta(0),
        description="Maximum time range if the question names incidents but no time range.",
    )
    everywhere: int = Field(
        default=5,
        ge=1,
        strict=True,
        description="How many incidents an internal entity must be in to count as infrastructure. "
        "Investigations examine infrastructure only if the question names it.",
    )
    events_per_question: int = Field(
        default=200,
        ge=1,
        le=10_000,
        strict=True,
        description="Maximum number of events that one search returns.",
    )
    between_steps: Duration = Field(
        default=timedelta(hours=24),
        gt=timedelta(0),
        description="Maximum time between two consecutive steps of an attack.",
    )
    found_near: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="The weight of findings that are only related to the question, as a fraction "
        "of their usual points.",
    )
    weights: Weights = Field(
        default_factory=Weights, description="How many points each kind of finding contributes."
    )
    bounds: Mapping[Persona, Bounds] = Field(
        default_factory=lambda: {
            persona: Bounds.model_validate(bounds) for persona, bounds in _DEFAULTS.items()
        },
        description="Limits for each persona. Omitted limits keep their defaults.",
    )

    @field_validator("bounds", mode="before")
    @classmethod
    def _over_the_defaults(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        given = {persona: {} for persona in _DEFAULTS} | dict(value)
        return {
            name: {**_DEFAULTS.get(name, {}), **bounds} if isinstance(bounds, Mapping) else bounds
            for name, bounds in given.items()
        }
