"""Entities of Wazuh alerts: only known fields count, by family of decoders."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tocsin import Incident
from tocsin_connectors.siem.wazuh.groups import build_incident

HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
AGENT = {("host", "app-1"), ("ip", "10.1.0.8")}


def incident(**fields: Any) -> Incident:
    source = {
        "@timestamp": "2026-11-20T09:19:51.250+0000",
        "rule": {"id": "7", "level": 10, "description": "Something was detected"},
        "agent": {"id": "004", "name": "app-1", "ip": "10.1.0.8"},
        **fields,
    }
    return build_incident([{"_id": "a1", "_source": source}], timedelta(hours=1))


def finding(**fields: Any) -> Incident:
    wazuh = {
        "rule": {"id": "sigma-7", "title": "Something was detected", "level": "high"},
        "agent": {"id": "004", "name": "app-1", "host": {"ip": ["10.1.0.8"]}},
    }
    source = {"@timestamp": "2026-11-20T09:19:51.250Z", "wazuh": wazuh, **fields}
    return build_incident([{"_id": "a1", "_source": source}], timedelta(hours=1))


def named(found: Incident) -> set[tuple[str, str]]:
    return {(entity.kind.value, entity.value) for entity in found.entities} - AGENT


# https://documentation.wazuh.com/current/user-manual/capabilities/vulnerability-detection/
def test_vulnerability_names_its_cve_and_not_its_references():
    found = incident(
        data={
            "vulnerability": {
                "cve": "CVE-2026-11111",
                "assigner": "cve@vendor.example",
                "references": ["https://nvd.vendor.example/vuln/detail/CVE-2026-11111"],
                "bugzilla_references": ["https://bugs.vendor.example/42"],
                "title": "CVE-2026-11111 on Ubuntu (libfoo)",
                "package": {"name": "libfoo", "source": "foo.net"},
                "rationale": "See https://blog.vendor.example for libfoo before 2.0.",
            }
        }
    )
    assert named(found) == {("cve", "CVE-2026-11111")}
    assert {entity.value for entity in found.sources} == {"app-1", "10.1.0.8"}


# https://docs.aws.amazon.com/guardduty/latest/ug/guardduty_finding-types-ec2.html
def test_guardduty_names_addresses_and_instances_and_not_its_own_ids():
    remote = {"ipAddressV4": "203.0.113.7", "organization": {"org": "example.net"}}
    found = incident(
        data={
            "aws": {
                "arn": "arn:aws:guardduty:eu-west-1:111122223333:detector/12/finding/34",
                "id": HASH[:32],
                "title": "Unprotected port on EC2 instance i-0abc",
                "service": {
                    "detectorId": HASH[:32],
                    "serviceName": "guardduty",
                    "action": {
                        "portProbeAction": {"portProbeDetails": [{"remoteIpDetails": remote}]}
                    },
                },
                "resource": {
                    "instanceDetails": {
                        "instanceId": "i-0abc",
                        "imageDescription": "Debian 12",
                        "networkInterfaces": [
                            {
                                "privateIpAddress": "10.2.0.4",
                                "privateDnsName": "ip-10-2-0-4.internal",
                            }
                        ],
                    },
                    "accessKeyDetails": {"userName": "ann", "principalId": "AIDAEXAMPLE"},
                },
            }
        }
    )
    assert named(found) == {
        *(("ip", "203.0.113.7"), ("ip", "10.2.0.4"), ("host", "ip-10-2-0-4.internal")),
        *(("cloud_resource", "i-0abc"), ("user", "ann")),
    }
    assert [entity.value for entity in found.sources] == ["203.0.113.7"]


@pytest.mark.parametrize(
    "data",
    [
        {"docker": {"Actor": {"ID": HASH, "Attributes": {"maintainer": "a@b.example"}}}},
        {"github": {"after": HASH[:40], "repo": "corp/site.net", "org": "corp"}},
        {
            "sca": {
                "check": {"rationale": r"NT\Terminal Services", "references": "https://cis.example"}
            }
        },
        {"virustotal": {"permalink": "https://vt.example/gui/file/1", "found": "1"}},
        {"url": "/index.php?q=evil.example", "id": "404"},
    ],
)
def test_ids_references_and_texts_are_not_entities(data):
    assert named(incident(data=data, full_log="seen at https://evil.example/x")) == set()


def test_windows_events_name_accounts_programs_and_hashes():
    found = incident(
        data={
            "win": {
                "system": {
                    "computer": "WS-7.corp.example",
                    "providerName": "Microsoft-Windows-Sysmon",
                },
                "eventdata": {
                    "image": "C:\\Windows\\System32\\cmd.exe",
                    "parentImage": "C:\\Temp\\drop.exe",
                    "user": "CORP\\ann",
                    "logonProcessName": "NtLmSsp",
                    "company": "vendor.example",
                    "hashes": f"SHA256={HASH},IMPHASH={HASH[:32]}",
                },
            }
        }
    )
    assert named(found) == {
        *(("host", "ws-7.corp.example"), ("user", "CORP\\ann"), ("file_hash", HASH)),
        *(("file", "C:\\Windows\\System32\\cmd.exe"), ("process", "cmd.exe")),
        *(("file", "C:\\Temp\\drop.exe"), ("process", "drop.exe")),
    }


def test_registry_keys_are_not_files():
    key = "HKEY_LOCAL_MACHINE\\System\\CurrentControlSet\\Services\\Foo"
    assert named(incident(syscheck={"path": key, "sha256_after": "0" * 64})) == set()
    assert named(incident(syscheck={"path": "/etc/foo"})) == {("file", "/etc/foo")}


def test_only_defanged_indicators_of_a_rules_text_count():
    rule = {
        "id": "7",
        "level": 9,
        "description": "Beacon to evil[.]example, see vendor.example/a.html",
    }
    assert named(incident(rule=rule)) == {("domain", "evil.example")}


# https://www.elastic.co/docs/reference/ecs/ecs-field-reference
def test_finding_names_fields_of_ecs_and_nothing_else():
    found = finding(
        data_stream={"dataset": "docker.events", "namespace": "default"},
        event={"provider": "signin.vendor.example", "id": HASH},
        container={"id": HASH, "image": {"name": "registry.example/app"}},
        user_agent={"device": {"name": "Mac"}},
        check={"rationale": "Terminal\\Users may change it.example"},
        user={"name": "ann", "id": HASH[:32]},
        related={"user": ["Ann Example", "S-1-5-18"], "hash": [f"IMPHASH={HASH[:32]}"]},
        source={"ip": "203.0.113.7", "port": 443, "domain": "build-4"},
        process={"executable": "/usr/bin/curl", "pid": 12},
    )
    assert named(found) == {
        *(("user", "ann"), ("ip", "203.0.113.7"), ("host", "build-4")),
        *(("file", "/usr/bin/curl"), ("process", "curl")),
    }


def test_tenant_of_a_cloud_service_is_not_a_host():
    host = {"id": "b86ab9d4", "name": "corp.onmicrosoft.example"}
    found = finding(event={"module": "o365"}, host=host, user={"email": "ann@corp.example"})
    assert named(found) == {("email", "ann@corp.example")}
    assert ("host", "corp.onmicrosoft.example") in named(finding(host=host))
