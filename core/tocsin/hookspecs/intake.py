"""Base class of intakes, which accept pushes while the database is not available."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field
from typing_extensions import TypeVar

from tocsin.errors import TryLater
from tocsin.fields import PluginSettings
from tocsin.hookspecs.configurable import Configurable
from tocsin.model import Health

S = TypeVar("S", bound="Intake.Settings", default=Any)


@dataclass(frozen=True, slots=True)
class IntakePosition:
    """A position in the stream of accepted pushes."""

    stream: str
    """The name of the stream, which differs from the names of all earlier streams.

    If a stream was lost and created again, the new name sorts after the earlier name.
    """
    sequence: int
    """The number of the last push before this position; 0 at the start of the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakePush:
    """A push that Tocsin has authenticated and parsed, before the intake accepts it."""

    provider: str
    key: str
    """The ID of the push within the provider. Pushes with the same key count as one push."""
    received_at: datetime
    body: bytes


@dataclass(frozen=True, slots=True)
class QueuedPush:
    """An accepted push, as the intake returns it."""

    sequence: int
    received_at: datetime
    body: bytes


@dataclass(frozen=True, slots=True)
class IntakePage:
    """Accepted pushes of one provider, in their order."""

    start: IntakePosition
    """The position after which no push is missing. It is later than the requested position if the
    intake has lost pushes between the two positions."""
    pushes: Sequence[QueuedPush]
    end: IntakePosition
    """The position from which to continue."""


class Intake(Configurable[S], ABC):
    """Base class of intakes, which accept pushes while the database is not available.

    One instance serves the table [intake]. Keep each accepted push for days after Tocsin has stored
    it, because Tocsin continues from an older position after an operator restores a backup of the
    database.

    All methods run in the event loop of the node, and must not block it.
    """

    class Settings(PluginSettings):
        """Settings of every intake; derive yours from it."""

        plugin: str = Field(description="The enabled plugin that this intake uses.")

    max_bytes: ClassVar[int] = 2**20
    """The maximum size of a body in bytes. Tocsin stores larger bodies directly in the database."""

    @property
    @abstractmethod
    def is_available(self) -> bool:
        """Whether `publish` is expected to succeed now."""

    async def start(self) -> None:
        """Prepare the intake; Tocsin calls this method once. Do not wait for servers, because a
        node must start even without them.
        """

    async def close(self) -> None:
        """Close the connections of the intake."""

    @abstractmethod
    async def check(self) -> Health:
        """Return whether accepted pushes are safe.

        Report every condition that can cause the loss of pushes as a problem. Raises `TryLater` if
        the servers do not respond.
        """

    @abstractmethod
    async def publish(self, push: IntakePush) -> IntakePosition:
        """Store a push safely, and return the position after it, within two seconds.

        If an earlier push had the same key and the intake still recognizes the key, return the
        position of the earlier push. Raises `ConflictError` if the bodies differ, and `TryLater` if
        the push was not accepted or the result is unknown.
        """

    @abstractmethod
    async def fetch(self, provider: str, position: IntakePosition | None, limit: int) -> IntakePage:
        """Return the pushes to a provider that follow a position, at most `limit`.

        Without a position, start with the first push. If there are no pushes yet, wait a few
        seconds. The same position always returns the same pushes. Only one node at a time fetches
        the pushes of a provider. Raises `TryLater` if the servers do not respond.
        """

    @abstractmethod
    async def acknowledge(self, provider: str, position: IntakePosition) -> None:
        """Receive the position before which Tocsin has stored all pushes to a provider.

        Use this position only for statistics, because Tocsin continues from the position in the
        database. Raises `TryLater` if the servers do not respond.
        """


class NoIntake(Intake):
    """Intake that accepts nothing, so that every push is stored in the database at once."""

    max_bytes = -1

    def __init__(self) -> None:
        """Need neither settings nor tools."""

    @property
    def is_available(self) -> bool:
        """False."""
        return False

    async def check(self) -> Health:
        """Return that there is nothing to check."""
        return Health(detail="no intake")

    async def publish(self, push: IntakePush) -> IntakePosition:  # noqa: ARG002 - the base's
        """Raise TryLater."""
        raise TryLater("no intake is configured")

    async def fetch(
        self,
        provider: str,  # noqa: ARG002 - the base's
        position: IntakePosition | None,  # noqa: ARG002
        limit: int,  # noqa: ARG002
    ) -> IntakePage:
        """Raise TryLater."""
        raise TryLater("no intake is configured")

    async def acknowledge(self, provider: str, position: IntakePosition) -> None:
        """Do nothing."""
