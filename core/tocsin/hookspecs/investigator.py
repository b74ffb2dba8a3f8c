"""Base class of investigators, and the query client that they use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from pydantic import Field

from tocsin.fields import PluginSettings
from tocsin.hookspecs.tools import Tools
from tocsin.model import Inquiry, Phase, QueryResult, Question, Report

T = TypeVar("T")


class QueryClient(Protocol):
    """Where an investigator asks. Every call is a step of the session's ledger.

    Where a step is in the ledger already, since a node was killed or the run is repeated, what
    stands there is answered, and nobody is asked.
    """

    @property
    def elapsed(self) -> timedelta:
        """How long the run had taken at its last step, as the ledger has it."""
        ...

    def enter(self, phase: Phase) -> None:
        """Note that what follows belongs to this phase."""
        ...

    async def ask(self, question: Question[T]) -> QueryResult[T]:
        """Return what came of a question; it raises nothing where it could not be answered."""
        ...

    async def ask_all(self, questions: Sequence[Question[T]]) -> list[QueryResult[T]]:
        """Return what came of each, in their order; they are asked side by side."""
        ...

    async def conclude(self, text: str, evidence: Sequence[str]) -> str:
        """Note a conclusion, and what it rests on; return its own step, to cite as evidence."""
        ...


class Investigator(ABC):
    """Makes a report of a question. It asks through its desk alone.

    From the same inquiry and the same answers it makes the same report: it looks at no clock, at
    no file and at nothing random, and keeps nothing from one run to the next.
    """

    class Settings(PluginSettings):
        """What every investigator can be told, under [investigator]; derive yours from it."""

        plugin: str = Field(
            default="investigator", description="The plugin that investigates; it must be enabled."
        )
        at_once: int = Field(
            default=4, ge=1, le=100, description="How many sessions a node investigates at once."
        )

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O. `settings` is an instance of this class's `Settings`."""
        self.settings = settings
        self.tools = tools

    async def start(self) -> None:
        """Get ready, once. Raising leaves this service without an investigator."""

    @abstractmethod
    async def investigate(self, inquiry: Inquiry, desk: QueryClient) -> Report:
        """Return what there is to say.

        Raises `InvestigationFailed` where nothing can be: an incident that is named does not
        exist, or every provider that is needed is away.
        """
