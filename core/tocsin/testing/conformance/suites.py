"""Conformance suites, composed of rules."""

from __future__ import annotations

from tocsin.testing.conformance.capabilities import CapabilityRules
from tocsin.testing.conformance.channel_settings import ChannelSettingsRules
from tocsin.testing.conformance.closure import ClosureRules
from tocsin.testing.conformance.comments import CommentRules
from tocsin.testing.conformance.coverage import CoverageRules
from tocsin.testing.conformance.deliveries import DeliveryRules
from tocsin.testing.conformance.enricher_failures import EnricherFailureRules
from tocsin.testing.conformance.enricher_settings import EnricherSettingsRules
from tocsin.testing.conformance.enrichments import EnrichmentRules
from tocsin.testing.conformance.event_contents import EventContentRules
from tocsin.testing.conformance.event_deliveries import EventDeliveryRules
from tocsin.testing.conformance.events import EventRules, HttpEventRules
from tocsin.testing.conformance.failures import FailureRules
from tocsin.testing.conformance.files import FileRules
from tocsin.testing.conformance.identity import IdentityRules
from tocsin.testing.conformance.intakes import IntakeRules
from tocsin.testing.conformance.object_statuses import RemoteStatusRules
from tocsin.testing.conformance.pagination import PaginationRules
from tocsin.testing.conformance.positions import PositionRules
from tocsin.testing.conformance.push_requests import PushRequestRules
from tocsin.testing.conformance.rate_limits import RateLimitRules
from tocsin.testing.conformance.receivers import ReceiverRules
from tocsin.testing.conformance.record_contracts import RecordContractRules
from tocsin.testing.conformance.records import RecordRules
from tocsin.testing.conformance.sessions import SessionRules
from tocsin.testing.conformance.settings import SettingsRules
from tocsin.testing.conformance.statuses import StatusRules
from tocsin.testing.conformance.texts import TextRules
from tocsin.testing.conformance.times import TimeRules


class SharedRules(SettingsRules, RecordRules, IdentityRules, TextRules, TimeRules):
    """Rules for every provider, regardless of its source."""


class ProviderConformance(
    SharedRules,
    RecordContractRules,
    PaginationRules,
    PositionRules,
    FailureRules,
    SessionRules,
    CoverageRules,
    CapabilityRules,
    EventRules,
    HttpEventRules,
    CommentRules,
    StatusRules,
    RateLimitRules,
):
    """Rules for providers that read an HTTP API.

    ::

        class TestAcme(ProviderConformance):
            provider = Acme
            simulator = AcmeSimulator

            def settings(self, url):
                return {"url": url, "client_secret": "a secret"}
    """


class FileProviderConformance(SharedRules, FileRules, EventRules):
    """Rules for providers that read files as they grow.

    ::

        class TestAcme(FileProviderConformance):
            provider = Acme

            def record(self, case):
                return {"id": case.id, "severity": case.severity, "at": case.created_at.isoformat()}
    """


class PushProviderConformance(SharedRules, PushRequestRules):
    """Rules for providers that receive pushed requests.

    ::

        class TestAcme(PushProviderConformance):
            provider = Acme

            def record(self, case):
                return {"id": case.id, "severity": case.severity, "at": case.created_at.isoformat()}
    """


class EnricherConformance(EnricherSettingsRules, EnrichmentRules, EnricherFailureRules):
    """Rules for enrichers. If the enricher does not send requests, omit `routes`.

    ::

        class TestAcme(EnricherConformance):
            enricher = Acme
            known = (Entity(EntityKind.IP, "203.0.113.9"), Entity(EntityKind.IP, "203.0.113.10"))
            unknown = (Entity(EntityKind.IP, "198.51.100.7"),)

            def settings(self, url):
                return {"url": url, "api_key": "a secret"}

            def routes(self):
                return [web.get("/v1/addresses/{address}", self.answer)]

            async def answer(self, request):
                if request.match_info["address"].startswith("203.0.113."):
                    return web.json_response({"verdict": "bad"})
                raise web.HTTPNotFound
    """


class ChannelConformance(ChannelSettingsRules, EventDeliveryRules):
    """Rules for channels that send each event in an HTTP request.

    ::

        class TestAcme(ChannelConformance):
            channel = Acme

            def settings(self, url):
                return {"url": url, "token": "a secret"}
    """


class ObjectChannelConformance(
    ChannelSettingsRules,
    DeliveryRules,
    EventContentRules,
    ClosureRules,
    RemoteStatusRules,
    ReceiverRules,
):
    """Rules for channels that keep objects in their receiver, such as tickets or cases.

    ::

        class TestAcme(ObjectChannelConformance):
            channel = Acme
            simulator = AcmeSimulator
            idempotency = Idempotency.SEARCH
            permissions = ("tickets:write",)

            def settings(self, url):
                return {"url": url, "api_key": "a secret"}

            def template_paths(self):
                return [Path(tocsin_acme.__file__).parent / "templates"]
    """


class IntakeConformance(IntakeRules):
    """Rules for intakes.

    ::

        class TestAcme(IntakeConformance):
            intake = Acme

            @asynccontextmanager
            async def serve(self):
                async with acme_server() as server:
                    yield {"url": server.url}
    """
