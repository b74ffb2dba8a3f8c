"""Schemas of erasure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from tocsin.model import EntityKind, Json
from tocsin.web.parsing import BodyModel, ResponseModel
from tocsin.web.schemas.examples import FINISHED


class NewErasure(BodyModel):
    """A request to erase an entity."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"entity": "user:j.doe", "dry_run": True}

    entity: Annotated[str, StringConstraints(max_length=2_000, pattern=r"^[^\x00]*$")] = Field(
        description="Kind and value of an entity, such as `user:j.doe`."
    )
    dry_run: bool = Field(
        default=False,
        description="If true, Tocsin only counts the changes and does not make them.",
    )


class SentCopy(ResponseModel):
    """A delivery or comment in which Tocsin already sent the value."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "delivery_id": "dlv_01KAJD9V3M1C8ZP0Q5T9W7XJ2B",
        "destination": "soar",
        "subject": "incident:4711",
        "event_id": "evt_01KAJD9V3M1C8ZP0Q5T9W7XJ2B",
        "remote_id": "1042",
        "remote_url": None,
        "outcome": "delivered",
        "at": FINISHED,
    }

    delivery_id: str | None
    destination: str
    subject: str
    event_id: str | None
    remote_id: str | None
    remote_url: str | None
    outcome: str
    at: datetime | None


class ErasureReceipt(ResponseModel):
    """Receipt of an erasure: the erased data, and the copies that Tocsin already sent."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "kind": "user",
        "pseudonym": "erased-3f9a1c0b7d2e",
        "at": FINISHED,
        "by": "admin:ana",
        "dry_run": True,
        "erased": {"incidents": 3, "incident_entities": 3},
        "active_investigations": 0,
        "configuration": [],
        "sent": [SentCopy.EXAMPLE],
    }

    kind: EntityKind
    pseudonym: str = Field(description="Replacement for the value.")
    at: datetime
    by: str
    dry_run: bool
    erased: dict[str, int] = Field(
        description="How many rows changed in each table, and lines in each archive file."
    )
    active_investigations: int = Field(
        description="Number of running investigations. Send the request again when they have ended."
    )
    configuration: list[str] = Field(
        description="Configuration objects that contain the value. The erasure does not change "
        "them."
    )
    sent: list[SentCopy] = Field(
        description="Sent deliveries and comments that contain the value. Erase the value in the "
        "receiving systems, too."
    )
