"""Intake that keeps pushes in memory, and can be away or lose them."""

from __future__ import annotations

import asyncio

from tocsin import (
    ConflictError,
    Health,
    Intake,
    IntakePage,
    IntakePosition,
    IntakePush,
    QueuedPush,
    Tools,
    TryLater,
)


class MemoryIntake(Intake):
    """Accepts pushes while it is not away."""

    def __init__(self, settings: Intake.Settings | None = None, tools: Tools | None = None) -> None:
        super().__init__(settings or Intake.Settings(plugin="memory"), tools)
        self.is_away = False
        self.acknowledged: dict[str, IntakePosition] = {}
        self.lost = 0
        self._stream = 1
        self._pushes: list[IntakePush] = []

    @property
    def is_available(self) -> bool:
        return not self.is_away

    async def check(self) -> Health:
        return Health(detail="in memory")

    def lose_stream(self) -> None:
        self._pushes, self._stream, self.lost = [], self._stream + 1, 0

    def lose_last(self) -> None:
        self._pushes.pop()

    async def publish(self, push: IntakePush) -> IntakePosition:
        self._require_present()
        for number, known in enumerate(self._pushes, 1):
            if (known.provider, known.key) == (push.provider, push.key):
                if known.body != push.body:
                    raise ConflictError("another push has this key")
                return self._place(number)
        self._pushes.append(push)
        return self._place(len(self._pushes))

    async def fetch(self, provider: str, position: IntakePosition | None, limit: int) -> IntakePage:
        await asyncio.sleep(0)  # a reader that finds nothing does not stop others
        self._require_present()
        is_known = position is not None and position.stream == self._place(0).stream
        start = max(position.sequence, self.lost) if is_known else self.lost
        start = min(start, len(self._pushes))
        found = [
            QueuedPush(number, push.received_at, push.body)
            for number, push in enumerate(self._pushes, 1)
            if number > start and push.provider == provider
        ][:limit]
        end = found[-1].sequence if found else len(self._pushes)
        return IntakePage(self._place(start), found, self._place(end))

    async def acknowledge(self, provider: str, position: IntakePosition) -> None:
        self._require_present()
        self.acknowledged[provider] = position

    def _place(self, sequence: int) -> IntakePosition:
        return IntakePosition(f"stream {self._stream:03}", sequence)

    def _require_present(self) -> None:
        if self.is_away:
            raise TryLater("away")
