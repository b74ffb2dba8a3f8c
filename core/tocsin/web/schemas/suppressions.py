"""Schemas of suppression rules."""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_network
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from tocsin.fields import NOT_BLANK
from tocsin.model import Json
from tocsin.registry import NAME_PATTERN
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import CREATED, EXPIRES
from tocsin.web.schemas.fields import Limit, Name, Timestamp, cursor_field

LIST = "u"

_PRINTED = r"^[^\x00-\x1f\x7f]+$"


def _parse_network(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError:
        raise ValueError("use a network without host bits, such as 192.0.2.0/24") from None


def _require_literal(value: str) -> str:
    if not value.strip("* "):
        raise ValueError("add text other than *")
    return value


class NewSuppressionRule(BodyModel):
    """A new suppression rule with at least one condition. It applies if all conditions match."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "pentest-2026",
        "owner": "ana",
        "reason": "Penetration test, announced until Friday",
        "ends_at": EXPIRES,
        "provider": "edge",
        "title": "Port scan*",
        "entity": None,
        "cidr": "192.0.2.0/24",
    }

    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=100)] = Field(
        description="Name of the rule. You cannot use the name again after the rule ends."
    )
    owner: Name = Field(description="Person or team responsible for the rule.")
    reason: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=1000, pattern=NOT_BLANK),
    ]
    ends_at: Timestamp = Field(description="When the rule ends, at most 366 days from now.")
    provider: Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=100)] | None = (
        Field(default=None, description="Name of the provider.")
    )
    title: (
        Annotated[
            str,
            StringConstraints(min_length=1, max_length=300, pattern=_PRINTED),
            AfterValidator(_require_literal),
        ]
        | None
    ) = Field(
        default=None,
        description="Pattern for the whole title; `*` matches any text.",
    )
    entity: (
        Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern=_PRINTED)] | None
    ) = Field(default=None, description="Value of an entity of the incident.")
    cidr: (
        Annotated[str, StringConstraints(max_length=50), AfterValidator(_parse_network)] | None
    ) = Field(default=None, description="Network that contains an IP address of the incident.")

    @model_validator(mode="after")
    def _require_condition(self) -> Self:
        if not any((self.provider, self.title, self.entity, self.cidr)):
            raise ValueError("add a condition: provider, title, entity or cidr")
        return self


class SuppressionItem(ResponseModel):
    """A suppression rule."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        **NewSuppressionRule.EXAMPLE,
        "is_active": True,
        "suppressed_events": 12,
        "created_by": "ana",
        "created_at": CREATED,
    }

    name: str
    owner: str
    reason: str
    provider: str | None
    title: str | None
    entity: str | None
    cidr: str | None
    is_active: bool
    suppressed_events: int
    created_by: str
    created_at: datetime
    ends_at: datetime


class SuppressionQuery(QueryModel):
    """Query parameters for listing suppression rules."""

    active: bool | None = Field(
        default=None, description="If true, the list contains only rules that have not ended."
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class SuppressionList(ResponseModel):
    """One page of suppression rules."""

    suppressions: list[SuppressionItem]
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
