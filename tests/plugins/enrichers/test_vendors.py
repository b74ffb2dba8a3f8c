"""Vendor responses, and the resulting enrichments."""

from __future__ import annotations

from datetime import timedelta

import pytest
from aiohttp import web

from tocsin import Broken, Disposition, Entity, EntityKind, Refused, Relation, RelationType
from tocsin_plugins.abuseipdb import AbuseIpDb
from tocsin_plugins.greynoise import GreyNoise
from tocsin_plugins.misp import Misp
from tocsin_plugins.rdap import Rdap
from tocsin_plugins.rdap.records import registered_name
from tocsin_plugins.virustotal import VirusTotal

from .vendors import (
    AbuseIpDbServer,
    GreyNoiseServer,
    MispServer,
    RdapServer,
    VirusTotalServer,
)

ADDRESS = Entity(EntityKind.IP, "198.51.100.7")
DOMAIN = Entity(EntityKind.DOMAIN, "evil.example")
BAD, SUSPECT, UNKNOWN, GOOD = (
    Disposition.MALICIOUS,
    Disposition.SUSPICIOUS,
    Disposition.UNKNOWN,
    Disposition.BENIGN,
)


class TestAbuseIpDb:
    @pytest.fixture
    async def vendor(self):
        async with AbuseIpDbServer() as vendor:
            yield vendor

    @pytest.mark.parametrize(
        ("report", "disposition"),
        [
            ({"abuseConfidenceScore": 100}, BAD),
            ({"abuseConfidenceScore": 75}, BAD),
            ({"abuseConfidenceScore": 74}, SUSPECT),
            ({"abuseConfidenceScore": 24}, UNKNOWN),
            ({"abuseConfidenceScore": 90, "isWhitelisted": True}, GOOD),
        ],
    )
    async def test_the_confidence_decides(self, vendor, make, report, disposition):
        vendor.known[ADDRESS.value] = report
        [said] = await make(AbuseIpDb, **vendor.settings).enrich([ADDRESS])
        assert said.disposition is disposition
        assert said.score == report["abuseConfidenceScore"]

    async def test_it_is_said_in_words_with_the_facts(self, vendor, make):
        vendor.known[ADDRESS.value] = {
            "abuseConfidenceScore": 98,
            "totalReports": 1_204,
            "isTor": True,
        }
        [said] = await make(AbuseIpDb, max_age_days=30, **vendor.settings).enrich([ADDRESS])
        assert said.summary == (
            "Reported 1,204 times in the last 30 days, "
            "with an abuse confidence of 98% (Example Hosting, NL)"
        )
        assert said.tags == ("tor",)
        assert said.link == "https://www.abuseipdb.com/check/198.51.100.7"
        assert vendor.requests[0].query["maxAgeInDays"] == "30"

    async def test_a_report_without_a_confidence_is_broken(self, vendor, make):
        vendor.known[ADDRESS.value] = {"abuseConfidenceScore": "high"}
        with pytest.raises(Broken):
            await make(AbuseIpDb, **vendor.settings).enrich([ADDRESS])


class TestGreyNoise:
    @pytest.fixture
    async def vendor(self):
        async with GreyNoiseServer() as vendor:
            yield vendor

    @pytest.mark.parametrize(
        ("answer", "disposition", "tags"),
        [
            ({"noise": True, "classification": "malicious"}, BAD, ("internet-scanner",)),
            ({"noise": True, "classification": "suspicious"}, SUSPECT, ("internet-scanner",)),
            ({"noise": True, "classification": "benign"}, GOOD, ("internet-scanner",)),
            ({"noise": True, "classification": "new word"}, UNKNOWN, ("internet-scanner",)),
            ({"riot": True, "classification": "unknown"}, GOOD, ("common-service",)),
        ],
    )
    async def test_the_classification_decides(self, vendor, make, answer, disposition, tags):
        vendor.known[ADDRESS.value] = answer
        [said] = await make(GreyNoise, **vendor.settings).enrich([ADDRESS])
        assert (said.disposition, said.tags, said.score) == (disposition, tags, None)

    async def test_of_ipv6_it_is_not_asked(self, vendor, make):
        six = Entity(EntityKind.IP, "2001:db8::1")
        assert await make(GreyNoise, **vendor.settings).enrich([six]) == []
        assert vendor.requests == []

    async def test_without_a_key_none_is_sent(self, vendor, make):
        vendor.header = ""
        vendor.known[ADDRESS.value] = {"noise": True, "name": "Scanners Inc"}
        [said] = await make(GreyNoise, url=vendor.url).enrich([ADDRESS])
        assert "Scanners Inc" in said.summary
        assert "key" not in vendor.requests[0].headers


class TestVirusTotal:
    @pytest.fixture
    async def vendor(self):
        async with VirusTotalServer() as vendor:
            yield vendor

    @pytest.mark.parametrize(
        ("stats", "disposition", "score"),
        [
            ({"malicious": 40, "undetected": 30}, BAD, 57),
            ({"malicious": 3, "harmless": 87}, BAD, 3),
            ({"malicious": 2, "harmless": 88}, SUSPECT, 2),
            ({"suspicious": 1, "harmless": 89}, SUSPECT, 1),
            ({"harmless": 90}, UNKNOWN, 0),
            ({"timeout": 90, "malicious": "many"}, UNKNOWN, None),
        ],
    )
    async def test_the_verdicts_of_the_scanners_decide(
        self, vendor, make, stats, disposition, score
    ):
        vendor.known[ADDRESS.value] = {"last_analysis_stats": stats}
        [said] = await make(VirusTotal, **vendor.settings).enrich([ADDRESS])
        assert (said.disposition, said.score) == (disposition, score)

    async def test_a_file_is_named_by_its_threat(self, vendor, make):
        sha256 = Entity(EntityKind.FILE_HASH, "AB" * 32)
        vendor.known[sha256.value] = {
            "last_analysis_stats": {"malicious": 55, "undetected": 15},
            "popular_threat_classification": {"suggested_threat_label": "trojan.emotet"},
            "tags": ["peexe", "signed"],
            "meaningful_name": "invoice.exe",
        }
        [said] = await make(VirusTotal, **vendor.settings).enrich([sha256])
        assert said.summary == "55 of 70 scanners flag it (label: trojan.emotet)"
        assert said.tags == ("trojan.emotet", "peexe", "signed")
        assert said.facts["file_name"] == "invoice.exe"
        assert said.facts["analysed_at"] == "2026-09-21T14:13:20+00:00"

    async def test_a_url_is_found_whatever_is_in_it(self, vendor, make):
        url = Entity(EntityKind.URL, "http://evil.example/a?b=c&d=ü#f")
        vendor.known[url.value] = {}
        [said] = await make(VirusTotal, **vendor.settings).enrich([url])
        assert said.entity == url

    @pytest.mark.parametrize("value", ["ab" * 64, "not a hash", ""])
    async def test_a_hash_of_another_kind_is_not_asked_for(self, vendor, make, value):
        entity = Entity(EntityKind.FILE_HASH, value)
        assert await make(VirusTotal, **vendor.settings).enrich([entity]) == []
        assert vendor.requests == []

    async def test_the_public_rate_is_what_it_begins_with(self, vendor, make):
        assert make(VirusTotal, **vendor.settings).settings.requests_per_minute == 4


class TestMisp:
    @pytest.fixture
    async def vendor(self):
        async with MispServer() as vendor:
            yield vendor

    async def test_an_attribute_for_detection_is_malicious(self, vendor, make):
        vendor.known[ADDRESS.value] = [
            {"value": ADDRESS.value, "tags": ["tlp:amber", PATTERN], "comment": "C2"}
        ]
        [said] = await make(Misp, **vendor.settings).enrich([ADDRESS])
        assert said.disposition is BAD
        assert (
            said.summary == "Found in one event, marked for detection (latest event: Phishing wave)"
        )
        assert (said.tags, said.techniques) == (("tlp:amber",), ("T1566.001",))
        assert said.link == f"{vendor.url}/events/view/7"
        assert said.facts["comments"] == ["C2"]

    async def test_one_for_context_alone_is_unknown(self, vendor, make):
        vendor.known[DOMAIN.value] = [{"value": DOMAIN.value, "to_ids": False}]
        [said] = await make(Misp, **vendor.settings).enrich([DOMAIN])
        assert said.disposition is UNKNOWN

    async def test_a_part_of_a_combined_value_counts(self, vendor, make):
        vendor.known[ADDRESS.value] = [{"value": f"evil.example|{ADDRESS.value}"}]
        assert len(await make(Misp, **vendor.settings).enrich([ADDRESS])) == 1

    async def test_what_only_resembles_the_value_does_not_count(self, vendor, make):
        vendor.known[ADDRESS.value] = [{"value": "198.51.100.70"}, {"value": None}]
        assert await make(Misp, **vendor.settings).enrich([ADDRESS]) == []

    async def test_many_are_asked_for_at_once_and_told_in_their_order(self, vendor, make):
        several = [Entity(EntityKind.DOMAIN, f"d{n}.example") for n in range(20)]
        for entity in several[::2]:
            vendor.known[entity.value] = [{"value": entity.value}]
        said = await make(Misp, **vendor.settings).enrich(several)
        assert [enrichment.entity for enrichment in said] == several[::2]
        assert len(vendor.requests) == 1

    async def test_one_value_with_very_many_attributes_hides_no_other(self, vendor, make):
        vendor.known[ADDRESS.value] = [{"value": ADDRESS.value}] * 1_200
        vendor.known[DOMAIN.value] = [{"value": DOMAIN.value}]
        said = await make(Misp, **vendor.settings).enrich([ADDRESS, DOMAIN])
        assert [enrichment.entity for enrichment in said] == [ADDRESS, DOMAIN]

    async def test_what_would_search_for_something_else_is_not_searched_for(self, vendor, make):
        several = [Entity(EntityKind.HOST, value) for value in ("!x", "%", "%a%")]
        assert await make(Misp, **vendor.settings).enrich(several) == []
        assert vendor.requests == []


PATTERN = 'misp-galaxy:mitre-attack-pattern="Spearphishing Attachment - T1566.001"'
CARD = ["vcard", [["version", {}, "text", "4.0"], ["fn", {}, "text", "Example Registrar"]]]


class TestRdap:
    @pytest.fixture
    async def vendor(self):
        async with RdapServer() as vendor:
            yield vendor

    @pytest.fixture
    def enricher(self, vendor, make):
        return make(Rdap, **vendor.settings)

    def record(self, registered):
        return {
            "objectClassName": "domain",
            "ldhName": "EVIL.EXAMPLE",
            "status": ["active"],
            "events": [
                {"eventAction": "registration", "eventDate": registered},
                {"eventAction": "expiration", "eventDate": "2027-01-01T00:00:00Z"},
            ],
            "entities": [{"roles": ["registrar"], "vcardArray": CARD}],
            "nameservers": [{"ldhName": "NS2.evil.example."}, {"ldhName": "ns1.evil.example"}],
        }

    async def test_a_domain_says_when_and_through_whom_it_was_registered(self, vendor, enricher):
        vendor.known["domain/evil.example"] = self.record("2019-05-01T08:00:00Z")
        [said] = await enricher.enrich([DOMAIN])
        assert said.summary == (
            "evil.example was registered on 2019-05-01 through Example Registrar"
        )
        assert said.disposition is UNKNOWN
        assert said.facts["nameservers"] == ["ns1.evil.example", "ns2.evil.example"]

    async def test_a_new_domain_is_suspicious(self, vendor, enricher, clock):
        registered = clock.now() - timedelta(days=29)
        vendor.known["domain/evil.example"] = self.record(registered.isoformat())
        [said] = await enricher.enrich([DOMAIN])
        assert (said.disposition, said.tags) == (SUSPECT, ("newly-registered",))

    async def test_only_the_registered_part_of_a_name_is_asked_for(self, vendor, enricher):
        vendor.known["domain/evil.example"] = self.record("2019-05-01T08:00:00Z")
        inner = Entity(EntityKind.DOMAIN, "alice-laptop.mail.evil.example")
        [said] = await enricher.enrich([inner])
        part_of = Relation(source=inner, type=RelationType.PART_OF, target=DOMAIN)
        assert said.relations == (part_of,)
        assert not any("alice" in str(request.url) for request in vendor.requests)

    @pytest.mark.parametrize(
        ("name", "registered"),
        [
            ("www.example.com", "example.com"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("example.co.uk", "example.co.uk"),
            ("co.uk", "co.uk"),
            ("münchen.example", "xn--mnchen-3ya.example"),
            ("localhost", ""),
            ("a b.example", ""),
            ("", ""),
        ],
    )
    def test_the_registered_part_is_told_by_its_ending(self, name, registered):
        assert registered_name(name) == registered

    async def test_an_address_says_whose_network_it_is_in(self, vendor, enricher):
        vendor.known[f"ip/{ADDRESS.value}"] = {
            "objectClassName": "ip network",
            "handle": "NET-1",
            "name": "EXAMPLE-NET",
            "country": "NL",
            "startAddress": "198.51.100.0",
            "endAddress": "198.51.100.255",
        }
        [said] = await enricher.enrich([ADDRESS])
        assert said.summary == "In the network from 198.51.100.0 to 198.51.100.255: EXAMPLE-NET, NL"

    async def test_what_no_server_is_named_for_is_not_asked_for(self, vendor, enricher):
        others = [Entity(EntityKind.DOMAIN, "a.nowhere"), Entity(EntityKind.IP, "192.0.2.1")]
        assert await enricher.enrich(others) == []
        assert all(request.path.startswith("/bootstrap/") for request in vendor.requests)

    async def test_the_registries_are_read_once_a_day(self, vendor, enricher, clock):
        for _ in range(3):
            await enricher.enrich([DOMAIN])
        assert [r.path for r in vendor.requests].count("/bootstrap/dns.json") == 1
        clock.advance(days=1)
        await enricher.enrich([DOMAIN])
        assert [r.path for r in vendor.requests].count("/bootstrap/dns.json") == 2

    async def test_a_server_that_handed_it_on_leads_to_the_one_that_has_it(self, vendor, enricher):
        vendor.known[f"ip/{ADDRESS.value}"] = web.Response(
            status=301, headers={"Location": f"{vendor.url}/rdap/moved"}
        )
        vendor.known["moved"] = {"startAddress": "198.51.100.0", "endAddress": "198.51.100.63"}
        [said] = await enricher.enrich([ADDRESS])
        assert said.summary == "In the network from 198.51.100.0 to 198.51.100.63"

    @pytest.mark.parametrize("target", ["", "gopher://x", "//["])
    async def test_one_that_leads_nowhere_is_refused(self, vendor, enricher, target):
        vendor.known[f"ip/{ADDRESS.value}"] = web.Response(status=302, headers={"Location": target})
        with pytest.raises(Refused):
            await enricher.enrich([ADDRESS])

    async def test_servers_that_lead_to_each_other_are_given_up(self, vendor, enricher):
        for one, other in (("a", "b"), ("b", "a"), (f"ip/{ADDRESS.value}", "a")):
            vendor.known[one] = web.Response(
                status=302, headers={"Location": f"{vendor.url}/rdap/{other}"}
            )
        with pytest.raises(Broken):
            await enricher.enrich([ADDRESS])

    async def test_one_server_can_be_asked_for_everything(self, vendor, make):
        vendor.known["domain/evil.example"] = self.record("2019-05-01T08:00:00Z")
        enricher = make(Rdap, url=f"{vendor.url}/rdap/")
        assert len(await enricher.enrich([DOMAIN])) == 1
        assert len(vendor.requests) == 1
