"""Conformance of the shipped enrichers."""

from __future__ import annotations

from typing import ClassVar

from aiohttp import web
from vendors import (
    AbuseIpDbServer,
    GreyNoiseServer,
    MispServer,
    RdapServer,
    Vendor,
    VirusTotalServer,
)

from tocsin import Entity, EntityKind
from tocsin.testing.conformance import EnricherConformance, exempt
from tocsin_plugins.abuseipdb import AbuseIpDb
from tocsin_plugins.greynoise import GreyNoise
from tocsin_plugins.misp import Misp
from tocsin_plugins.rdap import Rdap
from tocsin_plugins.virustotal import VirusTotal

CUT = exempt("the core cuts a sentence that is longer than any of this vendor's")
NO_CREDENTIALS = exempt("RDAP has no credentials")


def ip(value: str) -> Entity:
    return Entity(EntityKind.IP, value)


FIRST, SECOND, UNKNOWN = ip("198.51.100.7"), ip("198.51.100.8"), ip("198.51.100.9")


class OfVendor(EnricherConformance):
    """Asks a server that knows both addresses."""

    vendor: ClassVar[type[Vendor]]
    known = (FIRST, SECOND)
    unknown = (UNKNOWN,)

    def settings(self, url):
        vendor = self.vendor()
        return {name: value.replace(vendor.url, url) for name, value in vendor.settings.items()}

    def routes(self):
        vendor = self.vendor()
        vendor.known = {entity.value: self.knowledge_of(entity) for entity in self.known}
        return [web.route("*", "/{path:.*}", vendor._serve)]

    def knowledge_of(self, entity):
        return {}


class TestAbuseIpDb(OfVendor):
    enricher = AbuseIpDb
    vendor = AbuseIpDbServer
    test_results_are_within_limits = CUT
    unknown = ()


class TestGreyNoise(OfVendor):
    enricher = GreyNoise
    vendor = GreyNoiseServer
    test_results_are_within_limits = CUT

    def knowledge_of(self, entity):
        return {"noise": True, "classification": "malicious", "name": "a crawler"}


class TestMisp(OfVendor):
    enricher = Misp
    vendor = MispServer
    test_not_found_means_no_enrichment = exempt("a search that finds nothing is answered 200")

    def knowledge_of(self, entity):
        return [{"value": entity.value, "tags": ("tlp:green",)}]


class TestVirusTotal(OfVendor):
    enricher = VirusTotal
    vendor = VirusTotalServer

    def knowledge_of(self, entity):
        return {"last_analysis_stats": {"malicious": 7, "harmless": 60}, "as_owner": "Example"}


class Registries(RdapServer):
    """Names itself as it was asked."""

    @property
    def url(self):
        return str(self.requests[-1].url.origin()) if self.requests else super().url


class TestRdap(OfVendor):
    enricher = Rdap
    vendor = RdapServer
    test_not_found_means_no_enrichment = exempt("IANA's registry is there, or nothing is known")
    test_refused_credentials_raise = NO_CREDENTIALS
    test_check_raises_for_failures = NO_CREDENTIALS
    known = (Entity(EntityKind.DOMAIN, "evil.example"), Entity(EntityKind.DOMAIN, "a.example"))
    unknown = (Entity(EntityKind.DOMAIN, "nobody.example"),)

    def routes(self):
        vendor = Registries()
        names = [entity.value for entity in self.known]
        vendor.known = {f"domain/{name}": {"ldhName": name, "status": ["active"]} for name in names}
        return [web.route("*", "/{path:.*}", vendor._serve)]
