"""Receiver contracts, as read from `contract.toml` and `body.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tocsin.model.vocabulary import EntityKind, Json, Severity, Vocabulary

Pointer = Annotated[str, Field(pattern=r"^(/[^/]*)+$")]
"""A JSON Pointer (RFC 6901) into an answer, such as `/data/id`."""
Status = Annotated[int, Field(ge=100, le=599)]


class Idempotency(Vocabulary):
    """What keeps an event that comes twice from becoming two objects."""

    NATIVE = "native"
    """The receiver's own key: the second folds into the first, or is refused as known."""
    SEARCH = "search"
    """It is looked for before it is made."""
    NONE = "none"
    """Nothing: the event's id in the body lets whoever acts on it drop what it has seen."""


class Verification(Vocabulary):
    """What the templates were tried against."""

    REAL = "real"
    RECORDING = "recording"
    SIMULATOR = "simulator"
    CONTRACT = "contract"
    """Nothing but this contract, which was written from the receiver's documentation."""


class _ContractModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AnswerCondition(_ContractModel):
    """Something that an answer says."""

    pointer: Pointer
    equals: Json = None
    """What stands there; by default it is enough that something does."""


class AnswerRules(_ContractModel):
    """What the receiver's answers mean, beside their status."""

    success: tuple[AnswerCondition, ...] = ()
    """What an answer of 2xx has to say as well to be a success."""
    remote_id: Pointer | None = None
    """Where it says what the receiver calls the object that it made."""
    known: AnswerCondition | None = None
    """How it says that it has the object already, which is a success, whatever its status."""
    permanent: tuple[Status, ...] = ()
    """The statuses that will not be different if it is tried again."""


class Contract(_ContractModel):
    """One receiver, as data."""

    name: str = Field(min_length=1, max_length=100)
    documentation: str = Field(pattern=r"^https://\S+$")
    idempotency: Idempotency
    tested: Verification
    parts: tuple[str, ...] = Field(default=("body",), min_length=1)
    """What it is sent of each event: `body`, or what a channel of its own asks templates for."""
    url: str | None = Field(default=None, pattern=r"^https://\S+$")
    """Where to post to, where it takes a `webhook`; what differs from place to place stands in
    angle brackets."""
    channel: str | None = None
    """The kind of channel that alone can bring it there, where a `webhook` cannot."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """What it wants to be shown: headers, by the environment variables that may hold them."""
    headers_are_chosen: bool = False
    """Whether its operator chooses there which headers are asked for, if any."""
    secret_url: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*$")
    """The environment variable that may hold the whole URL, where knowing it is enough to post."""
    body_secrets: Mapping[str, str] = Field(default_factory=dict)
    """Members of a body that are secrets and in no template, by such variables."""
    settings: Mapping[str, Json] = Field(default_factory=dict)
    """What else a destination should be told, such as how many a minute the receiver takes."""
    notes: tuple[str, ...] = ()
    """What to see to at the receiver's side, a sentence or two each."""
    largest: int = Field(default=65_536, ge=1, le=262_144)
    """How many bytes a body may have."""
    severity: Mapping[Severity, str | int | float] = Field(default_factory=dict)
    """What the receiver calls ours."""
    entities: Mapping[EntityKind, str] = Field(default_factory=dict)
    """What the receiver calls the kinds of entities that it knows."""
    answer: AnswerRules = Field(default_factory=AnswerRules)
    body: dict[str, Any] = Field(default_factory=dict)
    """The JSON Schema (2020-12) of a body; without one, any JSON is right."""

    def tables(self) -> dict[str, Json]:
        """Return what templates see of it."""
        return {
            "severity": {ours.value: theirs for ours, theirs in self.severity.items()},
            "entities": {ours.value: theirs for ours, theirs in self.entities.items()},
        }
