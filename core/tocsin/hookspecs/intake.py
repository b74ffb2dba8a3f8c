"""Base class for intakes, which accept pushes while the database is not available."""

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
    """A push that Tocsin has authenticated and parsed and that the intake has not accepted yet."""

    provider: str
    key: str
    """The push's ID, unique within the provider. Pushes with the same key count as one push."""
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
    """Accepted pushes to one provider, in order."""

    start: IntakePosition
    """The position after which no push is missing. This position is later than the requested
    position if the intake has lost the pushes between the two."""
    pushes: Sequence[QueuedPush]
    end: IntakePosition
    """The position from which to continue."""


class Intake(Configurable[S], ABC):
    """Base class for intakes, which accept pushes while the database is not available.

    Tocsin creates one instance for the table [intake]. Keep each accepted push for some days after
    Tocsin has stored it: when an operator restores a backup of the database, Tocsin continues from
    an older position.

    All methods run in the node's event loop and must not block it.
    """

    class Settings(PluginSettings):
        """Settings shared by all intakes; derive your settings from this class."""

        plugin: str = Field(description="The enabled plugin that this intake uses.")

    max_bytes: ClassVar[int] = 2**20
    """The maximum body size in bytes. Tocsin stores larger bodies directly in the database."""

    @property
    @abstractmethod
    def is_available(self) -> bool:
        """Whether `publish` would probably succeed now."""

    async def start(self) -> None:
        """Prepare the intake. Tocsin calls this method once.

        Do not wait for servers, because a node must be able to start without them.
        """

    async def close(self) -> None:
        """Close the intake's connections."""

    @abstractmethod
    async def check(self) -> Health:
        """Return whether the intake keeps accepted pushes safe.

        Report a problem for everything that could make the intake lose pushes. Raises `TryLater` if
        the servers do not respond.
        """

    @abstractmethod
    async def publish(self, push: IntakePush) -> IntakePosition:
        """Store a push safely and return the position after it, within two seconds.

        If the intake recognizes the key of an earlier push, return the position of that push.
        Raises `ConflictError` if the two bodies differ, and `TryLater` if the push was not accepted
        or the result is unknown.
        """

    @abstractmethod
    async def fetch(self, provider: str, position: IntakePosition | None, limit: int) -> IntakePage:
        """Return the pushes to a provider that come after a position, at most `limit` of them.

        Without a position, start with the first push. If there are no pushes yet, wait a few
        seconds. For the same position, always return the same pushes. Only one node at a time
        fetches a provider's pushes. Raises `TryLater` if the servers do not respond.
        """

    @abstractmethod
    async def acknowledge(self, provider: str, position: IntakePosition) -> None:
        """Record that Tocsin has stored all of a provider's pushes up to this position.

        Use the position only for statistics, because Tocsin continues from the position in the
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
