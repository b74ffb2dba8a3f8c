"""Entities of evidence of every type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.defender.mapping import find_entities

K = EntityKind
ANN = {
    "accountName": "ann",
    "domainName": "EXAMPLE",
    "userSid": "S-1-5-21-1",
    "azureAdUserId": "0c6d",
    "userPrincipalName": "ann@example.com",
}
OF_ANN = {(K.USER, "EXAMPLE\\ann"), (K.USER, "ann@example.com")}
FILE = {"sha1": "b" * 40, "sha256": "a" * 64, "fileName": "a.exe", "filePath": "C:\\Temp"}
OF_FILE = {(K.FILE_HASH, "a" * 64), (K.FILE_HASH, "b" * 40), (K.FILE, "C:\\Temp\\a.exe")}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ipAddress", "userAccount", "accountName", "imageFile", "url", "x"]),
            inner,
        )
    ),
    max_leaves=20,
)


def named(kind: str, **members: object) -> set[tuple[EntityKind, str]]:
    evidence = {
        "@odata.type": f"#microsoft.graph.security.{kind}Evidence",
        "createdDateTime": "2026-11-20T09:00:00.1234567Z",
        "verdict": "suspicious",
        "remediationStatus": "none",
        "roles": ["attacker"],
        "tags": ["203.0.113.250"],
        **members,
    }
    return {(entity.kind, entity.value) for entity in find_entities([evidence])}


@pytest.mark.parametrize(
    ("kind", "members", "expected"),
    [
        ("ip", {"ipAddress": "203.0.113.7", "countryLetterCode": "NL"}, {(K.IP, "203.0.113.7")}),
        (
            "device",
            {
                "deviceDnsName": "web01.example.com",
                "hostName": "web01",
                "ipInterfaces": ["192.0.2.7", "2001:DB8::7"],
                "lastExternalIpAddress": "203.0.113.9",
                "loggedOnUsers": [{"accountName": "bob", "domainName": "EXAMPLE"}],
            },
            {
                (K.HOST, "web01.example.com"),
                (K.IP, "192.0.2.7"),
                (K.IP, "2001:db8::7"),
                (K.IP, "203.0.113.9"),
                (K.USER, "EXAMPLE\\bob"),
            },
        ),
        (
            "device",
            {"hostName": "web01", "dnsDomain": "example.com"},
            {(K.HOST, "web01.example.com")},
        ),
        ("user", {"userAccount": ANN}, OF_ANN),
        ("file", {"fileDetails": FILE}, OF_FILE),
        (
            "process",
            {
                "imageFile": FILE,
                "processCommandLine": "a.exe /q",
                "userAccount": ANN,
                "processId": 7,
            },
            {*OF_FILE, *OF_ANN, (K.PROCESS, "a.exe")},
        ),
        (
            "process",
            {"imageFile": {"fileName": "a.exe"}, "parentProcessImageFile": {"fileName": "b.exe"}},
            {(K.FILE, "a.exe"), (K.FILE, "b.exe"), (K.PROCESS, "a.exe"), (K.PROCESS, "b.exe")},
        ),
        ("url", {"url": "https://evil.example.com/x"}, {(K.URL, "https://evil.example.com/x")}),
        ("dns", {"domainName": "evil.example.com"}, {(K.DOMAIN, "evil.example.com")}),
        (
            "mailbox",
            {"primaryAddress": "ann@example.com", "userAccount": ANN},
            {*OF_ANN, (K.MAILBOX, "ann@example.com")},
        ),
        (
            "analyzedMessage",
            {
                "senderIp": "203.0.113.7",
                "recipientEmailAddress": "ann@example.com",
                "p1Sender": {"emailAddress": "eve@example.net", "domainName": "example.net"},
                "urls": ["https://evil.example.com/x"],
                "subject": "see http://198.51.100.1/",
            },
            {
                (K.IP, "203.0.113.7"),
                (K.MAILBOX, "ann@example.com"),
                (K.EMAIL, "eve@example.net"),
                (K.DOMAIN, "example.net"),
                (K.URL, "https://evil.example.com/x"),
            },
        ),
        (
            "azureResource",
            {"resourceId": "/subscriptions/s"},
            {(K.CLOUD_RESOURCE, "/subscriptions/s")},
        ),
        (
            "networkConnection",
            {
                "sourceAddress": {"ipAddress": "192.0.2.7"},
                "destinationAddress": {"ipAddress": "203.0.113.7"},
            },
            {(K.IP, "192.0.2.7"), (K.IP, "203.0.113.7")},
        ),
        ("fileHash", {"algorithm": "sha256", "value": "a" * 64}, {(K.FILE_HASH, "a" * 64)}),
        ("fileHash", {"algorithm": "sha256ac", "value": "a" * 64}, set()),
        ("fileHash", {"algorithm": "sha256", "value": "none"}, set()),
        ("url", {"url": "evil.example.com"}, {(K.DOMAIN, "evil.example.com")}),
        ("ofTheYear2031", {"somewhere": [{"ipAddress": "203.0.113.7"}]}, {(K.IP, "203.0.113.7")}),
        ("registryKey", {"registryKey": "SOFTWARE\\x"}, set()),
    ],
)
def test_entities_of_evidence_types(kind, members, expected):
    assert named(kind, **members) == expected


def test_windows_domain_is_not_a_dns_domain():
    assert (K.DOMAIN, "example") not in named("user", userAccount=ANN)


def test_cyclic_evidence_terminates():
    evidence: dict = {"ipAddress": "203.0.113.7"}
    for _ in range(5_000):
        evidence = {"inner": evidence}
    assert list(find_entities([evidence])) == []


@given(content=JSON)
def test_any_json_is_parsed(content):
    assert all(isinstance(entity, Entity) for entity in find_entities(content))
