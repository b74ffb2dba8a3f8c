"""Entities of Sentinel, in each of their forms."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.sentinel.entities import find_entities

K = EntityKind
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "Type", "$id", "$ref", "properties", "Name", "Entities"]),
            inner,
        )
    ),
    max_leaves=20,
)


def named(content: object) -> set[tuple[EntityKind, str]]:
    return {(entity.kind, entity.value) for entity in find_entities(content)}


def of_the_api(kind: str, **properties: object) -> dict:
    return {
        "id": "/subscriptions/s/providers/Microsoft.SecurityInsights/Entities/e1",
        "name": "e1d3d618-0000-4000-8000-98e3bb381539",
        "type": "Microsoft.SecurityInsights/Entities",
        "kind": kind,
        "properties": {"friendlyName": "a friend", **properties},
    }


@pytest.mark.parametrize(
    ("kind", "properties", "expected"),
    [
        ("Ip", {"address": "203.0.113.7"}, {(K.IP, "203.0.113.7")}),
        (
            "Host",
            {"hostName": "WEB01", "dnsDomain": "example.com"},
            {(K.HOST, "web01.example.com")},
        ),
        ("Host", {"netBiosName": "WEB01"}, {(K.HOST, "web01")}),
        ("Account", {"accountName": "ann", "ntDomain": "EXAMPLE"}, {(K.USER, "EXAMPLE\\ann")}),
        (
            "Account",
            {"accountName": "ann", "upnSuffix": "example.com", "ntDomain": "EXAMPLE"},
            {(K.USER, "ann@example.com"), (K.USER, "EXAMPLE\\ann")},
        ),
        ("Account", {"accountName": "ann@example.com"}, {(K.USER, "ann@example.com")}),
        ("Account", {"accountName": "root"}, {(K.USER, "root")}),
        ("Account", {"aadUserId": "0c6d"}, set()),
        ("File", {"directory": "C:\\Temp", "fileName": "a.exe"}, {(K.FILE, "C:\\Temp\\a.exe")}),
        ("File", {"directory": "/tmp", "fileName": "a"}, {(K.FILE, "/tmp/a")}),
        ("FileHash", {"hashValue": "A" * 64, "algorithm": "SHA256"}, {(K.FILE_HASH, "a" * 64)}),
        ("FileHash", {"hashValue": "none"}, set()),
        ("Url", {"url": "https://Evil.example.com/x"}, {(K.URL, "https://evil.example.com/x")}),
        ("Url", {"url": "evil.example.com"}, {(K.DOMAIN, "evil.example.com")}),
        ("Url", {"url": "203.0.113.7:8080"}, {(K.IP, "203.0.113.7")}),
        ("DnsResolution", {"domainName": "evil.example.com"}, {(K.DOMAIN, "evil.example.com")}),
        ("Process", {"commandLine": "curl -s x"}, {(K.PROCESS, "curl -s x")}),
        (
            "MailMessage",
            {
                "recipient": "ann@example.com",
                "p2Sender": "eve@example.net",
                "senderIP": "203.0.113.7",
            },
            {(K.MAILBOX, "ann@example.com"), (K.EMAIL, "eve@example.net"), (K.IP, "203.0.113.7")},
        ),
        ("Mailbox", {"mailboxPrimaryAddress": "ann@example.com"}, {(K.MAILBOX, "ann@example.com")}),
        (
            "AzureResource",
            {"resourceId": "/subscriptions/s"},
            {(K.CLOUD_RESOURCE, "/subscriptions/s")},
        ),
        ("Malware", {"malwareName": "Win32/Bad"}, set()),
        ("SomethingNew", {"address": "203.0.113.7"}, set()),
    ],
)
def test_an_entity_of_the_api(kind, properties, expected):
    assert named([of_the_api(kind, **properties)]) == expected


def test_process_name_comes_from_its_file():
    image = of_the_api("File", fileName="curl.exe", directory="C:\\Temp")
    process = of_the_api("Process", commandLine="curl -s x", imageFileEntityId=image["id"])
    assert (K.PROCESS, "curl.exe") in named([process, image])


LOGGED = [
    {"$id": "1", "HostName": "web01", "DnsDomain": "example.com", "Type": "host"},
    {"$id": "2", "Address": "203.0.113.7", "Location": {"CountryCode": "NL"}, "Type": "ip"},
    {
        "$id": "3",
        "Directory": "C:\\Temp",
        "Name": "a.exe",
        "FileHashes": [{"$id": "4", "Algorithm": "SHA1", "Value": "b" * 40, "Type": "filehash"}],
        "Type": "file",
    },
    {
        "$id": "5",
        "ImageFile": {"$ref": "3"},
        "CommandLine": "a.exe /q",
        "Account": {"$id": "6", "Name": "ann", "NTDomain": "EXAMPLE", "Type": "account"},
        "Host": {"$ref": "1"},
        "Type": "process",
    },
    {"$id": "7", "DomainName": "evil.example.com", "IpAddresses": [{"$ref": "2"}], "Type": "dns"},
    {"$id": "8", "ResourceId": "/subscriptions/s", "Type": "azure-resource"},
    {
        "$id": "9",
        "Sender": "eve@example.net",
        "Recipient": "ann@example.com",
        "Type": "mailMessage",
    },
]
IN_IT = {
    (K.HOST, "web01.example.com"),
    (K.IP, "203.0.113.7"),
    (K.FILE, "C:\\Temp\\a.exe"),
    (K.FILE_HASH, "b" * 40),
    (K.PROCESS, "a.exe"),
    (K.USER, "EXAMPLE\\ann"),
    (K.DOMAIN, "evil.example.com"),
    (K.CLOUD_RESOURCE, "/subscriptions/s"),
    (K.EMAIL, "eve@example.net"),
    (K.MAILBOX, "ann@example.com"),
}


def test_log_entities_resolve_references():
    assert named(LOGGED) == IN_IT


def test_nested_json_strings_are_decoded():
    assert named(json.dumps(LOGGED)) == IN_IT
    assert named({"Entities": json.dumps(LOGGED)}) == IN_IT
    assert named([of_the_api("Host", additionalData=json.dumps({"Entities": LOGGED}))]) == IN_IT


def test_attacker_text_is_not_parsed_as_entities():
    forged = json.dumps([{"Address": "198.51.100.9", "Type": "ip"}])
    assert named([of_the_api("Process", commandLine=forged)]) == {(K.PROCESS, forged)}
    assert named([of_the_api("Url", url=forged)]) == set()


def test_cyclic_references_terminate():
    one = {"$id": "1", "ImageFile": {"$ref": "2"}, "Type": "process"}
    other = {"$id": "2", "ImageFile": {"$ref": "1"}, "Type": "process", "Name": "a.exe"}
    assert named([one, other]) == {(K.PROCESS, "a.exe")}


@pytest.mark.parametrize("content", [None, "", "[", "nothing", 7, "[" * 100_000, {}, [None]])
def test_invalid_entity_lists_name_nothing(content):
    assert named(content) == set()


@given(content=JSON)
def test_any_json_is_parsed(content):
    for entity in (*find_entities(content), *find_entities(json.dumps(content))):
        assert isinstance(entity, Entity)
