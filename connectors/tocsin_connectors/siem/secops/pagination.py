"""Cursor over the detections of several rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

from tocsin import Window
from tocsin_connectors.siem.secops.client import DetectionPage, SecOpsClient

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class DetectionCursor:
    """What to ask next: a page of the detections of a rule that were created within a part."""

    rule: str
    part: Window
    page: str | None = None
    passed_over: bool = False
    """Whether some of the time could not be listed."""

    @classmethod
    def first(cls, rule: str, whole: Window) -> Self:
        """Return the step to begin with, of the first rule."""
        return cls(rule, whole)

    def halved(self) -> DetectionCursor:
        """Return the step that asks for half of the time, from its beginning."""
        middle = self.part.start + (self.part.end - self.part.start) // 2
        return replace(self, part=Window(self.part.start, middle), page=None)

    @property
    def span(self) -> timedelta:
        """How much time it asks for."""
        return self.part.end - self.part.start

    def passing_over(self) -> DetectionCursor:
        """Return the step from which reading goes on behind its part, without records of it."""
        return replace(self, page=None, passed_over=True)

    def following(
        self, found: DetectionPage, whole: Window, rules: Sequence[str]
    ) -> DetectionCursor | None:
        """Return the next step, None at the end of the last rule."""
        if found.next_token is not None:
            return replace(self, page=found.next_token)
        if self.part.end < whole.end:
            return replace(self, part=Window(self.part.end, whole.end), page=None)
        following = rules[rules.index(self.rule) + 1 :]
        return replace(self, rule=following[0], part=whole, page=None) if following else None

    def encode(self) -> list[Any]:
        """Return the token that `decode` turns back into this."""
        times = (self.part.start.isoformat(), self.part.end.isoformat())
        return [self.rule, *times, self.page, self.passed_over]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the step that `encode` made the token of."""
        rule, start, end, page, passed_over = token
        part = Window(datetime.fromisoformat(start), datetime.fromisoformat(end))
        return cls(rule, part, page, passed_over)


async def list_page(
    chronicle: SecOpsClient, step: DetectionCursor, limit: int
) -> tuple[DetectionCursor, DetectionPage]:
    """Return a step, and the page that it asks for."""
    return step, await chronicle.detections(step.rule, step.part, step.page, limit)


async def probe_page(chronicle: SecOpsClient, step: DetectionCursor) -> DetectionPage:
    """Return a page without detections, where others than those of a step can be listed."""
    before = Window(step.part.start - _SECOND, step.part.start)
    found = await chronicle.detections(step.rule, before, None, 1)
    return replace(found, records=(), next_token=None)
