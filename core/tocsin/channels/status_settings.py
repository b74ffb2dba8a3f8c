"""Settings of destinations whose channels report the statuses of objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr

from tocsin.fields import Duration
from tocsin.model import IncidentDisposition

StatusInterval = Annotated[
    Duration | None,
    Field(
        default=None,
        ge=timedelta(seconds=30),
        le=timedelta(days=1),
        description="Interval, at least 30s, at which Tocsin reads the statuses of existing "
        "objects, to list those that do not match their incidents. By default, Tocsin "
        "reads no statuses.",
    ),
]
"""The setting `status_interval` of a destination whose channel implements `read_statuses`."""

Resolutions = Annotated[
    Mapping[str, IncidentDisposition | Literal["none"]],
    Field(
        default={},
        max_length=100,
        description="Dispositions that incidents get when people close their objects, by "
        'resolution or status, such as `{ "Done" = "true-positive", "Won\'t Do" = "none" }`. '
        "Requires `status_interval`.",
    ),
]
"""The setting `resolutions` of a destination whose channel implements `list_closed_statuses`."""


WebhookSecret = Annotated[
    SecretStr | None,
    Field(
        default=None,
        min_length=16,
        max_length=1_000,
        description="Secret of the receiver's webhook, at least 16 characters. After each "
        "webhook, Tocsin immediately reads the statuses of the objects that the "
        "webhook names. Requires `status_interval`.",
    ),
]
"""The setting `webhook_secret` of a destination whose channel implements `parse_webhook`."""


def find_unmapped(settings: Any, statuses: Iterable[str]) -> Sequence[str]:
    """Return the problems of the setting `resolutions`, such as closed statuses without an
    entry.
    """
    if not settings.resolutions:
        return ()
    if settings.status_interval is None:
        return ("resolutions: set status_interval too, so that statuses are read",)
    missing = (status for status in statuses if status not in settings.resolutions)
    return [
        f'resolutions: add an entry for the closed status {status!r}, such as "{status}" = "none"'
        for status in missing
    ]


def require_status_interval(settings: Any) -> None:
    """Raise ValueError if `webhook_secret` is set, but `status_interval` is not."""
    if settings.webhook_secret is not None and settings.status_interval is None:
        raise ValueError("webhook_secret: set status_interval too, so that statuses are read")
