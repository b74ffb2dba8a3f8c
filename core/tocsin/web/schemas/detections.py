"""Schemas of detections."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from tocsin.model import IncidentDisposition, Json
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.fields import Limit
from tocsin.web.schemas.incidents import parse_timespan
from tocsin.web.schemas.providers import ProviderName


class DetectionQuery(QueryModel):
    """Filters of detections."""

    timespan: Annotated[timedelta, BeforeValidator(parse_timespan)] = Field(
        default=timedelta(days=90),
        description="How far back to count dispositions: an ISO 8601 duration.",
    )
    provider: ProviderName | None = Field(default=None, description="Filter by provider.")
    limit: Limit = 50


class DetectionItem(ResponseModel):
    """A provider's detection rule, with the dispositions of its incidents."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "provider": "edge",
        "rule": "Sign-in from a new country",
        "title": "Sign-in from a new country",
        "incident_count": 40,
        "dispositions": {"true-positive": 2, "false-positive": 38},
        "false_positive_ratio": 0.95,
        "latest_incident": 4711,
    }

    provider: str
    rule: str | None = Field(
        description="Name of the detection rule, or its ID if it has no name; null if Tocsin knows "
        "only the title."
    )
    title: str = Field(description="Title of the latest alert in the latest incident.")
    incident_count: int = Field(description="Number of incidents with a disposition.")
    dispositions: dict[IncidentDisposition, int] = Field(
        description="Number of incidents for each disposition that occurs."
    )
    false_positive_ratio: float = Field(description="Share of false positives, from 0 to 1.")
    latest_incident: int = Field(description="Number of the latest incident with a disposition.")


class DetectionList(ResponseModel):
    """Detections, ordered by their number of false positives."""

    detections: list[DetectionItem] = Field(
        description="Detections, by descending number of false positives."
    )
