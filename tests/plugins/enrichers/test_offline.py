"""Offline enrichers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tocsin import (
    Disposition,
    Edge,
    Entity,
    EntityKind,
    IncidentRecord,
    IncidentStatus,
    Neighborhood,
    Node,
    RelationType,
    Severity,
    Sighting,
)
from tocsin.hookspecs import NoKnowledge
from tocsin_plugins.attack import TACTICS, find_tactics, find_technique_name, load_techniques
from tocsin_plugins.enrichers import Attack, Cve, Domains, HistoryEnricher, Networks
from tocsin_plugins.enrichers import NeighborhoodEnricher as NeighborhoodKind

ADDRESS = Entity(EntityKind.IP, "198.51.100.7")
OTHER = Entity(EntityKind.DOMAIN, "evil.example")
THEN, NOW = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC)


def domain(name):
    return Entity(EntityKind.DOMAIN, name)


class Known(NoKnowledge):
    """The knowledge of a service that has seen what it is given."""

    def __init__(self, *, sightings=(), incidents=(), around=None):
        self.seen = {sighting.entity: sighting for sighting in sightings}
        self.incidents = incidents
        self.around = around

    async def sightings(self, entities):
        return [
            self.seen.get(entity, Sighting(entity=entity, incident_count=0)) for entity in entities
        ]

    async def incidents_about(self, entities, window=None, limit=50):
        about = (incident for incident in self.incidents if set(incident.entities) & set(entities))
        return list(about)[:limit]

    async def neighbors(self, entity, depth=1, limit=100):
        return self.around or await super().neighbors(entity, depth, limit)


class TestHistory:
    async def test_it_says_how_often_and_when_something_was_seen(self, make):
        sighting = Sighting(
            entity=ADDRESS,
            incident_count=12,
            first_seen=THEN,
            last_seen=NOW,
            recent=(42, 40, 7, 3),
            internal=True,
        )
        [said] = await make(HistoryEnricher, knowledge=Known(sightings=[sighting])).enrich(
            [OTHER, ADDRESS]
        )
        assert said.entity == ADDRESS
        assert said.summary == (
            "Seen in 12 incidents from 2026-01-02 to 2026-11-20 (latest: 42, 40, 7)"
        )
        assert said.tags == ("internal",)

    async def test_of_what_was_never_seen_it_says_nothing(self, make):
        assert await make(HistoryEnricher).enrich([ADDRESS]) == []


class TestNeighborhood:
    def edge(self, source, type_, target):
        return Edge(
            source=source,
            type=type_,
            target=target,
            first_seen=THEN,
            last_seen=NOW,
            count=1,
            known_from=("incident:7",),
        )

    def around(self, *edges, complete=True):
        nodes = dict.fromkeys(node for edge in edges for node in (edge.source, edge.target))
        return Known(around=Neighborhood(nodes=tuple(nodes), edges=edges, complete=complete))

    async def test_related_entities_are_named_with_the_other_incidents_they_were_in(self, make):
        center, other = Node.of(ADDRESS), Node.of(OTHER)
        first, second = Node("incident", "7"), Node("incident", "12")
        known = self.around(
            self.edge(other, RelationType.RESOLVES_TO, center),
            self.edge(first, RelationType.INVOLVES, center),
            self.edge(first, RelationType.INVOLVES, other),
            self.edge(second, RelationType.INVOLVES, other),
        )
        [said] = await make(NeighborhoodKind, knowledge=known).enrich([ADDRESS])
        assert said.summary == "Related to one other entity, which was in other incidents (12)"
        assert said.tags == ("known-by-association",)
        assert said.facts["related"] == [
            {
                "kind": "domain",
                "value": "evil.example",
                "relations": ["resolves-to"],
                "incidents": ["12"],
            }
        ]

    async def test_a_shared_incident_alone_is_no_relation(self, make):
        incident = Node("incident", "7")
        known = self.around(
            self.edge(incident, RelationType.INVOLVES, Node.of(ADDRESS)),
            self.edge(incident, RelationType.INVOLVES, Node.of(OTHER)),
        )
        assert await make(NeighborhoodKind, knowledge=known).enrich([ADDRESS]) == []

    async def test_what_investigations_alone_have_learned_counts_for_nothing(self, make):
        edge = self.edge(Node.of(OTHER), RelationType.RESOLVES_TO, Node.of(ADDRESS))
        taught = replace(edge, known_from=("session:ses_1#12", "session:ses_2#9"))
        assert await make(NeighborhoodKind, knowledge=self.around(taught)).enrich([ADDRESS]) == []
        told = replace(edge, known_from=("session:ses_1#12", "enricher:misp"))
        assert await make(NeighborhoodKind, knowledge=self.around(told)).enrich([ADDRESS])

    async def test_it_says_where_there_is_more_than_was_looked_at(self, make):
        edge = self.edge(Node.of(OTHER), RelationType.RESOLVES_TO, Node.of(ADDRESS))
        known = self.around(edge, complete=False)
        [said] = await make(NeighborhoodKind, knowledge=known).enrich([ADDRESS])
        assert said.summary.endswith("there may be more")


class TestAttack:
    def incident(self, number, *names):
        return IncidentRecord(
            number=number,
            provider="edge",
            external_id=str(number),
            title="",
            description="",
            severity=Severity.HIGH,
            status=IncidentStatus.NEW,
            occurred_at=NOW,
            updated_at=NOW,
            techniques=names,
            entities=(ADDRESS,),
        )

    async def test_it_names_techniques_and_puts_their_tactics_in_order(self, make):
        known = Known(
            incidents=[self.incident(1, "T1486", "T1110"), self.incident(2, "T1110", "T9999")]
        )
        [said] = await make(Attack, knowledge=known).enrich([ADDRESS, OTHER])
        assert said.summary == (
            "Techniques in its latest incidents: T1110 Brute Force, "
            "T1486 Data Encrypted for Impact, T9999"
        )
        assert said.techniques == ("T1110", "T1486", "T9999")
        assert said.tags == ("credential-access", "impact")

    def test_the_table_knows_techniques_by_their_ids(self):
        assert find_technique_name("T1059.001") == "PowerShell"
        assert find_technique_name("t1110") == "Brute Force"
        assert find_technique_name("T0000") is None
        assert find_tactics("T1078") == (
            "initial-access",
            "persistence",
            "privilege-escalation",
            "defense-evasion",
        )
        assert find_tactics("T1059.999") == ("execution",)
        assert find_tactics("nonsense") == ()

    def test_every_technique_has_a_name_and_tactics_in_order(self):
        assert len(load_techniques()) > 600
        for technique in load_techniques().values():
            assert technique.name
            assert technique.tactics
            assert list(technique.tactics) == sorted(technique.tactics, key=TACTICS.index)


class TestCve:
    async def test_what_is_known_to_be_exploited_is_suspicious(self, make):
        log4shell = Entity(EntityKind.CVE, "cve-2021-44228")
        unknown = Entity(EntityKind.CVE, "CVE-1999-0001")
        [said] = await make(Cve).enrich([unknown, log4shell])
        assert said.summary == (
            "Known to be exploited, including in ransomware attacks: "
            "Log4Shell remote code execution"
        )
        assert said.tags == ("known-exploited", "ransomware")
        assert said.disposition is Disposition.SUSPICIOUS

    async def test_a_catalogue_of_ones_own_counts_instead(self, make, tmp_path):
        path = tmp_path / "kev.csv"
        path.write_text(
            "cveID,vendorProject,product,vulnerabilityName,dateAdded,knownRansomwareCampaignUse\n"
            'CVE-2026-0001,Acme,"Widget, large",Acme Widget Overflow,2026-02-03,Unknown\n'
        )
        enricher = make(Cve, path=str(path))
        await enricher.start()
        asked = [Entity(EntityKind.CVE, name) for name in ("CVE-2021-44228", "CVE-2026-0001")]
        [said] = await enricher.enrich(asked)
        assert said.summary == "Known to be exploited since 2026-02-03: Acme Widget Overflow"
        assert said.facts["product"] == "Widget, large"
        assert (await enricher.check()).detail == f"{path} contains 1 vulnerability"


class TestDomains:
    @pytest.mark.parametrize(
        "name",
        [
            "google.com",
            "wikipedia.org",
            "microsoftonline.com",
            "googleusercontent.com",
            "bundesgesundheitsministerium.de",
            "office365.com",
            "d111111abcdef8.cloudfront.net",
            "münchen.de",
            "example.com",
            "mail.example.com",
        ],
    )
    async def test_usual_names_are_not_suspicious(self, make, name):
        for said in await make(Domains, own=["example.com"]).enrich([domain(name)]):
            assert said.disposition is Disposition.UNKNOWN

    @pytest.mark.parametrize(
        ("name", "tag"),
        [
            ("xjwqzbtkfhgpd.net", "random-looking"),
            ("kq3v9x7zj1p4w8.com", "random-looking"),
            ("examp1e.com", "lookalike"),
            ("exarnple.com", "lookalike"),
            ("xn--exmple-cua.com", "lookalike"),
            ("exаmple.com", "lookalike"),  # noqa: RUF001 - the second a is Cyrillic
            ("exmaple.com", "lookalike"),
            ("example.top", "lookalike"),
            ("example-login.net", "lookalike"),
            ("example.evil.net", "lookalike"),
        ],
    )
    async def test_names_of_machines_and_deceivers_are_suspicious(self, make, name, tag):
        [said] = await make(Domains, own=["example.com"]).enrich([domain(name)])
        assert said.disposition is Disposition.SUSPICIOUS
        assert tag in said.tags

    async def test_every_point_of_the_score_is_explained(self, make):
        name = "paypal-secure-account-update-login.xyz"
        [said] = await make(Domains).enrich([domain(name)])
        assert said.score == sum(sign["points"] for sign in said.facts["signs"]) == 35
        assert all(sign["says"] in said.summary for sign in said.facts["signs"])

    async def test_urls_and_mail_addresses_are_judged_by_their_hosts(self, make):
        url = Entity(EntityKind.URL, "https://xjwqzbtkfhgpd.net/login")
        mail = Entity(EntityKind.EMAIL, "ceo@examp1e.com")
        plain = Entity(EntityKind.URL, "https://198.51.100.7/xjwqzbtkfhgpd")
        said = await make(Domains, own_domains=["example.com"]).enrich([plain, url, mail])
        assert [enrichment.entity for enrichment in said] == [url, mail]


class TestNetworks:
    async def test_the_most_specific_network_says_whose_an_address_is(self, make):
        owners = {"10.0.0.0/8": "Acme", "10.1.0.0/16": "Berlin office", "2001:db8:7::/48": "Lab"}
        addresses = [
            Entity(EntityKind.IP, address) for address in ("10.1.2.3", "10.2.0.1", "2001:db8:7::1")
        ]
        said = await make(Networks, owners=owners).enrich(addresses)
        assert [enrichment.facts["owner"] for enrichment in said] == [
            "Berlin office",
            "Acme",
            "Lab",
        ]
        assert said[0].summary == (
            "Belongs to Berlin office (10.1.0.0/16); reserved for private use "
            "(10.0.0.0/8, RFC 1918)"
        )

    @pytest.mark.parametrize(
        ("address", "rfc"),
        [
            ("192.168.1.1", "RFC 1918"),
            ("100.64.0.1", "RFC 6598"),
            ("203.0.113.9", "RFC 5737"),
            ("255.255.255.255", "RFC 919"),
            ("::1", "RFC 4291"),
            ("fd00::1", "RFC 4193"),
            ("::ffff:10.0.0.1", "RFC 1918"),
        ],
    )
    async def test_reserved_ranges_are_named_with_their_rfc(self, make, address, rfc):
        [said] = await make(Networks).enrich([Entity(EntityKind.IP, address)])
        assert said.facts["rfc"] == rfc

    async def test_of_other_addresses_it_says_nothing(self, make):
        several = [Entity(EntityKind.IP, "8.8.8.8"), Entity(EntityKind.IP, "2606:4700::1111")]
        assert await make(Networks).enrich(several) == []

    @pytest.mark.parametrize("network", ["10.1.2.3/16", "office"])
    def test_what_is_no_network_is_a_mistake(self, make, network):
        with pytest.raises(ValidationError, match=r"owners\.\S+\.\[key\]\n.*use a network"):
            make(Networks, owners={network: "x"})
