"""Settings for channels that report the statuses of objects."""

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
        description="How often Tocsin reads the statuses of existing objects. It then lists the "
        "objects whose statuses do not match their incidents. The interval is 30s to 1d. By "
        "default, Tocsin does not read statuses.",
    ),
]
"""The setting `status_interval`, for channels that implement `read_statuses`."""

Resolutions = Annotated[
    Mapping[str, IncidentDisposition | Literal["none"]],
    Field(
        default={},
        max_length=100,
        description="The disposition that an incident gets when someone closes its object. The "
        "keys are the object's resolutions or statuses, such as "
        '`{ "Done" = "true-positive", "Won\'t Do" = "none" }`. Requires `status_interval`.',
    ),
]
"""The setting `resolutions`, for channels that implement `list_closed_statuses`."""


WebhookSecret = Annotated[
    SecretStr | None,
    Field(
        default=None,
        min_length=16,
        max_length=1_000,
        description="Secret of the receiver's webhook, with 16 characters or more. When a webhook "
        "arrives, Tocsin immediately reads the statuses of the objects that it names. Requires "
        "`status_interval`.",
    ),
]
"""The setting `webhook_secret`, for channels that implement `parse_webhook`."""


def find_unmapped(settings: Any, statuses: Iterable[str]) -> Sequence[str]:
    """Return problems with the setting `resolutions`, such as closed statuses without an entry."""
    if not settings.resolutions:
        return ()
    if settings.status_interval is None:
        return ("resolutions: also set status_interval, so that Tocsin reads statuses",)
    missing = (status for status in statuses if status not in settings.resolutions)
    return [
        f'resolutions: add an entry for the closed status {status!r}, such as "{status}" = "none"'
        for status in missing
    ]


def require_status_interval(settings: Any) -> None:
    """Raise ValueError if `webhook_secret` is set, but `status_interval` is not."""
    if settings.webhook_secret is not None and settings.status_interval is None:
        raise ValueError("webhook_secret: also set status_interval, so that Tocsin reads statuses")
