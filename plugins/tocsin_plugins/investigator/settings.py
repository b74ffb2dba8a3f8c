"""Settings of the default investigator: bounds, weights and windows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tocsin import Duration, Investigator, Persona

DEEPEST = 3


class Weights(BaseModel):
    """[investigator.weights]: how many points each part of the score can add, or take away.

    What a rule found counts in full, or by as much as it found.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    severity: float = Field(
        default=35, ge=-100, le=100, description="The worst severity of the incidents."
    )
    reputation: float = Field(
        default=25, ge=-100, le=100, description="Sources that call an entity bad."
    )
    agreement: float = Field(
        default=5, ge=-100, le=100, description="Several sources that call the same entity bad."
    )
    disagreement: float = Field(
        default=0, ge=-100, le=100, description="Sources that contradict one another."
    )
    success_after_failures: float = Field(
        default=45, ge=-100, le=100, description="A logon that succeeded after failed ones."
    )
    attack_sequence: float = Field(
        default=25, ge=-100, le=100, description="Steps of an attack in the order of ATT&CK."
    )
    callback: float = Field(
        default=20, ge=-100, le=100, description="Something of ours that contacted what is bad."
    )
    lateral_movement: float = Field(
        default=20, ge=-100, le=100, description="One origin that reached several of our hosts."
    )
    exploited_cve: float = Field(
        default=20, ge=-100, le=100, description="A vulnerability that is known to be exploited."
    )
    shared_entity: float = Field(
        default=8, ge=-100, le=100, description="An entity that several incidents have in common."
    )
    recurrence: float = Field(
        default=6, ge=-100, le=100, description="An entity that comes back, day after day."
    )
    burst: float = Field(default=4, ge=-100, le=100, description="Much in a short time.")
    first_seen: float = Field(
        default=3, ge=-100, le=100, description="An entity that was never seen before."
    )
    rare_entity: float = Field(
        default=3, ge=-100, le=100, description="An entity that is seldom seen."
    )
    benign_explanation: float = Field(
        default=-40, ge=-100, le=100, description="Sources that explain what was seen."
    )
    background_noise: float = Field(
        default=-15, ge=-100, le=100, description="Scanners that knock at every door."
    )
    internal_only: float = Field(
        default=-15, ge=-100, le=100, description="Nothing from outside has a part in it."
    )

    def of(self, kind: str) -> float:
        """Return the weight of a rule, such as `shared-entity`."""
        weight: float = getattr(self, kind.replace("-", "_"))
        return weight


class Bounds(BaseModel):
    """[investigator.bounds.<persona>]: how far an investigation may go."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    depth: int = Field(
        ge=0, le=DEEPEST, description="How many steps away from what was asked about."
    )
    entities: int = Field(ge=1, le=5_000, description="How many entities are examined.")
    incidents: int = Field(ge=1, le=1_000, description="How many incidents are examined.")
    provider_calls: int = Field(
        ge=0, le=5_000, description="How many questions for events providers are asked."
    )
    seconds: int = Field(ge=1, le=3_600, description="After how long no more is asked.")
    timeline: int = Field(ge=1, le=1_000, description="How many lines the timeline has.")

    def deepened(self, times: int) -> Bounds:
        """Return them one step deeper and twice as wide, so many times."""
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
    """What the default investigator can be told."""

    default_window: Duration = Field(
        default=timedelta(days=7),
        gt=timedelta(0),
        description="How far back is looked where the query gives no time.",
    )
    around_incidents: Duration = Field(
        default=timedelta(days=1),
        description="How much time before and after named incidents is looked at.",
    )
    longest_window: Duration = Field(
        default=timedelta(days=90),
        gt=timedelta(0),
        description="How much time is looked at where it follows from the incidents.",
    )
    everywhere: int = Field(
        default=5,
        ge=1,
        strict=True,
        description="An internal entity in so many incidents is infrastructure: what else had to "
        "do with it is not followed, unless it was named.",
    )
    events_per_question: int = Field(
        default=200,
        ge=1,
        le=10_000,
        strict=True,
        description="How many events are asked for at once.",
    )
    between_steps: Duration = Field(
        default=timedelta(hours=24),
        gt=timedelta(0),
        description="How much time may lie between two steps of one attack.",
    )
    found_near: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="How much of its points a finding counts that is not about what was asked.",
    )
    weights: Weights = Field(
        default_factory=Weights, description="The points of the parts of the score."
    )
    bounds: Mapping[Persona, Bounds] = Field(
        default_factory=lambda: {
            persona: Bounds.model_validate(bounds) for persona, bounds in _DEFAULTS.items()
        },
        description="How far each persona goes; what is not given keeps its default.",
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
