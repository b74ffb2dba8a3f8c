"""Services of the API for destinations, built for one configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tocsin.clock import Clock
from tocsin.delivery.destinations.channels import ChannelFactory
from tocsin.delivery.destinations.message_actions import MessageActionInbox
from tocsin.delivery.destinations.samples import SampleSender
from tocsin.delivery.destinations.settled import SettledDestinations
from tocsin.delivery.destinations.validation import DestinationValidator, Encrypt
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.statuses.webhooks import WebhookInbox
from tocsin.store import Database


@dataclass(frozen=True, slots=True)
class DestinationServices:
    """Validation and tests of destinations, and requests from their receivers."""

    validator: DestinationValidator
    samples: SampleSender
    webhooks: WebhookInbox
    message_actions: MessageActionInbox

    @classmethod
    def build(
        cls,
        channels: ChannelFactory,
        renderer: Renderer,
        database: Database,
        clock: Clock,
        encrypt: Encrypt,
    ) -> Self:
        """Return the services for these channels and templates; a reload builds them again."""
        settled = SettledDestinations(channels, database)
        return cls(
            DestinationValidator(channels, encrypt),
            SampleSender(channels, renderer, clock, channels.public_url),
            WebhookInbox(settled, database, clock),
            MessageActionInbox(channels, settled, clock),
        )
