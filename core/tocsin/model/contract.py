"""Receiver contracts, as read from `contract.toml` and `body.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tocsin.model.vocabulary import EntityKind, Json, Severity, Vocabulary

Pointer = Annotated[str, Field(pattern=r"^(/[^/]*)*$")]
"""A JSON Pointer (RFC 6901) into a response, such as `/data/id`; empty for the whole response."""
Status = Annotated[int, Field(ge=100, le=599)]


class Idempotency(Vocabulary):
    """Ways to prevent duplicate objects for one event."""

    NATIVE = "native"
    """The receiver recognizes a repeated request by a key and merges or rejects it."""
    SEARCH = "search"
    """The channel searches for an existing object before it creates one."""
    NONE = "none"
    """Duplicates are possible. Consumers can recognize duplicates by the event ID in the body."""


class Verification(Vocabulary):
    """What the templates were tested against."""

    REAL = "real"
    """The receiver itself."""
    RECORDING = "recording"
    """Recorded responses from the receiver."""
    SIMULATOR = "simulator"
    """A simulator that follows the receiver's documentation."""
    CONTRACT = "contract"
    """Only the contract, which follows the receiver's documentation."""


class _ContractModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class AnswerCondition(_ContractModel):
    """A condition on a response."""

    pointer: Pointer
    equals: Json = None
    """The expected value; by default, any value except null."""


class AnswerRules(_ContractModel):
    """How Tocsin interprets the receiver's responses, apart from their status."""

    success: tuple[AnswerCondition, ...] = ()
    """Conditions, all of which a 2xx response must meet to count as a success."""
    accepted: tuple[Status, ...] = ()
    """The 2xx statuses that prove receipt even without the event ID. Tocsin retries after any other
    2xx response without the event ID. If neither this tuple nor `event_id` is set, Tocsin does not
    require such proof."""
    event_id: Pointer | None = None
    """Where a 2xx response contains the event ID, which proves receipt."""
    text: str | None = None
    """The body that a 2xx response must have to count as a success."""
    remote_id: Pointer | None = None
    """Where a 2xx response contains the receiver's ID for the created object; required there."""
    known: AnswerCondition | None = None
    """The condition for a response that reports that the object already exists. Such a response
    counts as a success, whatever its status.
    """
    no_proof: str | None = Field(default=None, min_length=1, max_length=500)
    """Why a 2xx response does not prove success, for the receiver's documentation page."""
    permanent: tuple[Status, ...] = ()
    """Statuses after which Tocsin does not retry, because a retry would fail too."""


class Contract(_ContractModel):
    """Description of the requests that a receiver accepts and of its responses."""

    name: str = Field(min_length=1, max_length=100)
    """The name of the receiver."""
    documentation: str = Field(pattern=r"^https://\S+$")
    """The URL of the receiver's documentation."""
    idempotency: Idempotency
    tested: Verification
    parts: tuple[str, ...] = Field(default=("body",), min_length=1)
    """The parts of each event that the channel sends: `body`, or the channel's own parts."""
    url: str | None = Field(default=None, pattern=r"^https://\S+$")
    """The URL for a `webhook`, with site-specific parts in angle brackets."""
    channel: str | None = None
    """The channel that delivers to the receiver, if a `webhook` cannot."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Required headers, each with the environment variable that contains its value."""
    headers_are_chosen: bool = False
    """Whether the receiver's operator decides which headers are required."""
    secret_url: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*$")
    """The environment variable that contains the URL, if the URL itself is the secret."""
    body_secrets: Mapping[str, str] = Field(default_factory=dict)
    """Secret members of the body, each with the environment variable that contains its value. No
    template contains these members."""
    settings: Mapping[str, Json] = Field(default_factory=dict)
    """Further settings for a destination, such as the receiver's rate limit."""
    notes: tuple[str, ...] = ()
    """Setup notes for the receiver, each one or two sentences long."""
    largest: int = Field(default=65_536, ge=1, le=262_144)
    """The maximum size of a body in bytes."""
    severity: Mapping[Severity, str | int | float] = Field(default_factory=dict)
    """The receiver's names for severities."""
    entities: Mapping[EntityKind, str] = Field(default_factory=dict)
    """The receiver's names for the entity kinds that it supports."""
    answer: AnswerRules = Field(default_factory=AnswerRules)
    body: dict[str, Any] = Field(default_factory=dict)
    """The JSON Schema (2020-12) of a body; without one, any JSON is valid."""

    def tables(self) -> dict[str, Json]:
        """Return the parts of the contract that templates can use."""
        return {
            "severity": {ours.value: theirs for ours, theirs in self.severity.items()},
            "entities": {ours.value: theirs for ours, theirs in self.entities.items()},
        }
