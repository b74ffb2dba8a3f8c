"""Settings of the default investigator: bounds, weights and windows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tocsin import Duration, Investigator, Persona

DEEPEST = 3


class Weights(BaseModel):
    """[investigator.weights]: points that each part of the score can add or subtract.

    A finding counts in full or in proportion to its strength.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    severity: float = Field(
        default=35, ge=-100, le=100, description="The worst severity of the incidents."
    )
    reputation: float = Field(
        default=25, ge=-100, le=100, description="Sources that rate an entity as bad."
    )
    agreement: float = Field(
        default=5, ge=-100, le=100, description="Several sources that agree that an entity is bad."
    )
    disagreement: float = Field(
        default=0, ge=-100, le=100, description="Sources that contradict each other."
    )
    success_after_failures: float = Field(
        default=45, ge=-100, le=100, description="A successful logon after failed logons."
    )
    attack_sequence: float = Field(
        default=25, ge=-100, le=100, description="Steps of an attack in the order of ATT&CK."
    )
    callback: float = Field(
        default=20, ge=-100, le=100, description="An internal entity that contacted a bad entity."
    )
    lateral_movement: float = Field(
        default=20, ge=-100, le=100, description="One origin that reached several internal hosts."
    )
    exploited_cve: float = Field(
        default=20, ge=-100, le=100, description="A vulnerability that is known to be exploited."
    )
    shared_entity: float = Field(
        default=8, ge=-100, le=100, description="An entity that several incidents share."
    )
    recurrence: float = Field(
        default=6, ge=-100, le=100, description="An entity that recurs on several days."
    )
    burst: float = Field(default=4, ge=-100, le=100, description="Many records in a short time.")
    first_seen: float = Field(
        default=3, ge=-100, le=100, description="An entity that was not seen before."
    )
    rare_entity: float = Field(
        default=3, ge=-100, le=100, description="An entity in few incidents."
    )
    benign_explanation: float = Field(
        default=-40, ge=-100, le=100, description="Sources that rate an entity as benign."
    )
    background_noise: float = Field(
        default=-15, ge=-100, le=100, description="An address that scans the whole internet."
    )
    internal_only: float = Field(
        default=-15, ge=-100, le=100, description="No external entity is involved."
    )

    def of(self, kind: str) -> float:
        """Return the weight of a rule, such as `shared-entity`."""
        weight: float = getattr(self, kind.replace("-", "_"))
        return weight


class Bounds(BaseModel):
    """[investigator.bounds.<persona>]: limits of an investigation."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    depth: int = Field(ge=0, le=DEEPEST, description="Maximum number of steps from the subject.")
    entities: int = Field(ge=1, le=5_000, description="Maximum number of examined entities.")
    incidents: int = Field(ge=1, le=1_000, description="Maximum number of examined incidents.")
    provider_calls: int = Field(
        ge=0, le=5_000, description="Maximum number of event searches in providers."
    )
    seconds: int = Field(ge=1, le=3_600, description="Time limit for all queries, in seconds.")
    timeline: int = Field(ge=1, le=1_000, description="Maximum number of lines in the timeline.")

    def deepened(self, times: int) -> Bounds:
        """Return the bounds, made one step deeper and twice as wide this many times."""
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
        description="Time range of questions that do not specify a time range.",
    )
    around_incidents: Duration = Field(
        default=timedelta(days=1),
        description="Time before and after the incidents in a question that Tocsin also searches.",
    )
    longest_window: Duration = Field(
        default=timedelta(days=90),
        gt=timedelta(0),
        description="Maximum time range that Tocsin derives from the incidents in a question.",
    )
    everywhere: int = Field(
        default=5,
        ge=1,
        strict=True,
        description="An internal entity in at least this number of incidents counts as "
        "infrastructure. Tocsin follows infrastructure only if the question names it.",
    )
    events_per_question: int = Field(
        default=200,
        ge=1,
        le=10_000,
        strict=True,
        description="Maximum number of events in one search.",
    )
    between_steps: Duration = Field(
        default=timedelta(hours=24),
        gt=timedelta(0),
        description="Maximum time between two steps of an attack.",
    )
    found_near: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="Share of its points that a finding outside the question adds to the score.",
    )
    weights: Weights = Field(
        default_factory=Weights, description="Points for each part of the score."
    )
    bounds: Mapping[Persona, Bounds] = Field(
        default_factory=lambda: {
            persona: Bounds.model_validate(bounds) for persona, bounds in _DEFAULTS.items()
        },
        description="Limits for each persona; omitted limits keep their defaults.",
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
