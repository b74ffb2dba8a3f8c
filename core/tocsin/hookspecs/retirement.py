"""End of life of a vendor's API that a provider uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

WARNING_PERIOD = timedelta(days=180)
"""Time before an API's retirement at which warnings begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRetirement:
    """The announced retirement of an API or API version that a provider uses."""

    api: str
    """What the vendor calls the API."""
    ends_on: date
    advice: str
    """What operators should do."""
    source: str
    """The URL of the vendor's announcement."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings with which the provider uses this API; if empty, it always uses the API."""

    def applies(self, settings: Any) -> bool:
        """Return whether a provider with these settings uses this API."""
        return all(getattr(settings, name) == value for name, value in self.settings.items())

    def is_due(self, now: datetime) -> bool:
        """Return whether the API ends within 180 days or has already ended."""
        return self.ends_on - now.date() <= WARNING_PERIOD

    def describe(self, now: datetime) -> str:
        """Describe the retirement for operators in one line."""
        verb = "ended" if self.ends_on <= now.date() else "ends"
        return f"{self.api} {verb} on {self.ends_on.isoformat()}: {self.advice} ({self.source})"
