"""Sources and targets of incidents, in the records of each provider."""

from __future__ import annotations

import pytest
from bench.scene_records import build_incident

CASES = {
    "an alert on a reply names the client by the flow": (
        "suricata",
        {
            "alert": {"signature": "x"},
            "src_ip": "192.0.2.10",
            "dest_ip": "203.0.113.6",
            "flow": {"src_ip": "203.0.113.6", "dest_ip": "192.0.2.10"},
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "a rule names attacker and victim": (
        "suricata",
        {
            "alert": {
                "signature": "x",
                "source": {"ip": "203.0.113.6"},
                "target": {"ip": "192.0.2.10"},
            },
            "src_ip": "192.0.2.10",
            "dest_ip": "203.0.113.6",
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "a Host header has no role": (
        "suricata",
        {
            "alert": {"signature": "x"},
            "src_ip": "203.0.113.6",
            "dest_ip": "192.0.2.10",
            "http": {"hostname": "198.51.100.1", "url": "/"},
            "tls": {"sni": "forged.example"},
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "a mail has sender and recipient": (
        "suricata",
        {
            "alert": {"signature": "x"},
            "src_ip": "203.0.113.6",
            "dest_ip": "192.0.2.25",
            "smtp": {"mail_from": "<a@evil.example>", "rcpt_to": ["<b@example.org>"]},
        },
        ["203.0.113.6", "a@evil.example"],
        ["192.0.2.25", "b@example.org"],
    ),
    "CrowdSec": (
        "crowdsec",
        {
            "scenario": "crowdsecurity/ssh-bf",
            "source": "203.0.113.6",
            "meta": {"target_user": "root", "machine": "bastion"},
        },
        ["203.0.113.6"],
        ["root", "bastion"],
    ),
    "ECS: the machine that logged is the target of a remote source": (
        "ecs",
        {"title": "x", "source": {"ip": "203.0.113.6"}, "host": {"name": "rdp-1"}},
        ["203.0.113.6"],
        ["rdp-1"],
    ),
    "ECS: a sensor between two addresses has no role": (
        "ecs",
        {
            "title": "x",
            "source": {"ip": "203.0.113.6"},
            "destination": {"ip": "192.0.2.10"},
            "host": {"name": "fw-1"},
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "ECS: a process runs on its machine": (
        "ecs",
        {"title": "x", "host": {"name": "pc-1"}, "process": {"name": "evil.exe"}},
        ["pc-1"],
        [],
    ),
    "OpenSearch": (
        "opensearch",
        {
            "trigger_name": "x",
            "severity": "1",
            "documents": [{"source.ip": "203.0.113.6", "destination.ip": "192.0.2.10"}],
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "Wazuh": (
        "wazuh",
        {
            "rule": {"id": "1", "description": "x", "level": 5},
            "data": {"srcip": "203.0.113.6"},
            "agent": {"name": "web-1"},
        },
        ["203.0.113.6"],
        ["web-1"],
    ),
    "Splunk: without a source, the malware is on the destination": (
        "splunk",
        {"rule_title": "x", "urgency": "high", "dest": "pc-1", "file_hash": "a" * 64},
        ["pc-1"],
        [],
    ),
    "QRadar": (
        "qradar",
        {
            "description": "x",
            "magnitude": 5,
            "offense_type": 1,
            "offense_source": "192.0.2.10",
            "sources": ["203.0.113.6"],
            "destinations": ["192.0.2.10"],
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "Sentinel names roles for mails alone": (
        "sentinel",
        {
            "title": "x",
            "severity": "High",
            "entities": [
                {"kind": "Ip", "properties": {"address": "203.0.113.6"}},
                {
                    "kind": "MailMessage",
                    "properties": {"sender": "a@evil.example", "recipient": "b@example.org"},
                },
            ],
        },
        ["a@evil.example"],
        ["b@example.org"],
    ),
    "Defender: the gateway of a compromised device has no role": (
        "defender",
        {
            "displayName": "x",
            "severity": "high",
            "evidence": [
                {
                    "roles": ["compromised"],
                    "deviceDnsName": "pc-1",
                    "lastExternalIpAddress": "192.0.2.1",
                },
                {"roles": ["commandAndControl"], "ipAddress": "203.0.113.6"},
            ],
        },
        ["pc-1"],
        ["203.0.113.6"],
    ),
    "Falcon: the gateway of a device has no role": (
        "crowdstrike",
        {
            "display_name": "x",
            "device": {"hostname": "pc-1", "external_ip": "192.0.2.1"},
            "network_accesses": [{"remote_address": "203.0.113.6"}],
        },
        ["pc-1"],
        ["203.0.113.6"],
    ),
    "SecOps": (
        "secops",
        {
            "ruleName": "x",
            "severity": "HIGH",
            "events": [{"principal": {"ip": ["203.0.113.6"]}, "target": {"ip": ["192.0.2.10"]}}],
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "OCSF": (
        "ocsf",
        {
            "finding_info": {"title": "x"},
            "device": {"hostname": "web-1"},
            "evidences": [{"src_endpoint": {"ip": "203.0.113.6"}}],
        },
        ["203.0.113.6"],
        ["web-1"],
    ),
    "Alertmanager": (
        "alertmanager",
        {"labels": {"alertname": "x", "src_ip": "203.0.113.6", "dst_ip": "192.0.2.10"}},
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "Graylog": (
        "graylog",
        {
            "message": "x",
            "priority": 2,
            "fields": {"source_ip": "203.0.113.6", "destination_ip": "192.0.2.10"},
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
    "a script": (
        "push",
        {
            "title": "x",
            "entities": [
                {"kind": "ip", "value": "203.0.113.6", "role": "source"},
                {"kind": "ip", "value": "192.0.2.10", "role": "target"},
                {"kind": "ip", "value": "192.0.2.11"},
            ],
        },
        ["203.0.113.6"],
        ["192.0.2.10"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_source_and_target_are_those_that_the_siem_names(name):
    shape, record, sources, targets = CASES[name]
    incident = build_incident(shape, 1, record)
    assert sorted(entity.value for entity in incident.sources) == sorted(sources)
    assert sorted(entity.value for entity in incident.targets) == sorted(targets)
    assert {*incident.sources, *incident.targets} <= set(incident.entities)
