"""Schemas of webhooks of ticket products."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict

from tocsin.model import Json
from tocsin.web.parsing import BodyModel, ResponseModel


class TicketEvent(BodyModel):
    """A webhook from a ticket product."""

    model_config = ConfigDict(extra="allow")

    EXAMPLE: ClassVar[dict[str, Json]] = {"issue": {"key": "SEC-17"}}


class EventReceipt(ResponseModel):
    """Confirmation that Tocsin accepted a webhook."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"status": "accepted"}

    status: Literal["accepted"]
