"""Schemas of the alerts of an incident."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from tocsin.model import Json
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.fields import Limit, TotalRelation, composite_cursor_field
from tocsin.web.schemas.incidents import MOMENT, IncidentAlert

LIST = "a"


class FlowItem(ResponseModel):
    """An alert's network connection."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "source": "203.0.113.7",
        "source_port": 51812,
        "target": "192.0.2.10",
        "target_port": 443,
        "protocol": "tcp",
        "direction": "inbound",
    }

    source: str | None
    source_port: int | None
    target: str | None
    target_port: int | None
    protocol: str | None
    direction: str | None = Field(description="Direction that the SIEM reports.")


class AlertItem(IncidentAlert):
    """An alert of an incident, with its record."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"record": {"event_type": "alert", "dest_port": 443}}

    flow: FlowItem | None
    record: dict[str, Any] | None = Field(
        description="The alert as the SIEM returned it; null if Tocsin did not store the record."
    )


class AlertQuery(QueryModel):
    """Page of alerts."""

    limit: Limit = 20
    cursor: composite_cursor_field(LIST, MOMENT, str) | None = None  # type: ignore[valid-type]


class AlertList(ResponseModel):
    """One page of an incident's alerts."""

    EXAMPLE: ClassVar[dict[str, Json]] = {}

    alerts: list[AlertItem] = Field(description="Alerts, latest first.")
    total: int
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
