"""Intake on NATS JetStream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin import Intake, Metric, hookimpl
from tocsin_nats.intake import NatsIntake


@hookimpl
def tocsin_intakes() -> type[Intake]:
    """Return the intake."""
    return NatsIntake


@hookimpl
def tocsin_metrics(objects: Mapping[str, Any]) -> Sequence[Metric]:
    """Return what the intake last saw of its servers."""
    return [metric for intake in objects.values() for metric in intake.list_metrics()]
