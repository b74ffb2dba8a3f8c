"""Contracts of the built-in providers, held against their mappings and their samples."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Any

import pytest
from tests.connectors.crowdsec.test_conformance import TestCrowdSec as CrowdSecSuite
from tests.connectors.crowdstrike.test_conformance import TestCrowdStrike as CrowdStrikeSuite
from tests.connectors.datadog.test_conformance import TestDatadog as DatadogSuite
from tests.connectors.defender.test_conformance import TestAlerts as DefenderAlertsSuite
from tests.connectors.defender.test_conformance import TestDefender as DefenderSuite
from tests.connectors.elastic.test_conformance import TestAlerts as ElasticAlertsSuite
from tests.connectors.elastic.test_conformance import TestCases as ElasticCasesSuite
from tests.connectors.exabeam.test_conformance import TestExabeam as ExabeamSuite
from tests.connectors.graylog.test_conformance import TestGraylog as GraylogSuite
from tests.connectors.insightidr.test_conformance import TestInsightIDR as InsightIDRSuite
from tests.connectors.opensearch.test_conformance import TestOpenSearch as OpenSearchSuite
from tests.connectors.qradar.test_conformance import TestQRadar as QRadarSuite
from tests.connectors.secops.test_conformance import TestSecOps as SecOpsSuite
from tests.connectors.sentinel.test_conformance import TestSentinel as SentinelSuite
from tests.connectors.splunk.test_conformance import TestNotableEvents as SplunkSuite
from tests.connectors.wazuh.test_conformance import TestWazuh4 as WazuhSuite
from tests.docs.test_providers import list_documented_kinds

from tocsin import ApiRetirement, WindowedProvider
from tocsin.testing import make_settings, make_tools
from tocsin.testing.conformance.record_shapes import without_field
from tocsin_connectors.siem.retirements import load_retirements

SUITES = {
    "crowdsec": CrowdSecSuite,
    "crowdstrike": CrowdStrikeSuite,
    "datadog": DatadogSuite,
    "defender": DefenderSuite,
    "defender-alerts": DefenderAlertsSuite,
    "elastic-alerts": ElasticAlertsSuite,
    "elastic-cases": ElasticCasesSuite,
    "exabeam": ExabeamSuite,
    "graylog": GraylogSuite,
    "insightidr": InsightIDRSuite,
    "opensearch": OpenSearchSuite,
    "qradar": QRadarSuite,
    "secops": SecOpsSuite,
    "sentinel": SentinelSuite,
    "splunk": SplunkSuite,
    "wazuh": WazuhSuite,
}
VALUES: tuple[Any, ...] = (
    *("198.51.100.77", "host-77", "evil77.example.net", "https://evil77.example.net/x", "T1059"),
    *("TA0011", "CVE-2026-12345", "ana77@example.net", "a1" * 32, "/tmp/a77"),
    *("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "closed", "high", "true", "/incidents/x"),
    *(7, 1_600_000_000, 1_600_000_000_000, 4_000_000_000_000, True, False),
    *(
        "hxxp://evil77[.]example[.]net",
        "cscli",
        ["attack.T1059"],
        "technique:t1059",
        "usr.id:ana77",
    ),
    *(
        "ipv4",
        "username",
        "system",
        "src_ip",
        "observable-type-ipv4",
        "EventCRE",
        "attacked",
        "technique",
        {"associated_ip": "198.51.100.77", "x": 3},
    ),
    *('{"mitre_attack": ["T1059"]}', '{"asset": ["x_machine"]}'),
)
VARIABLE = {"key": "src_ip", "value": "198.51.100.7"}
NO_TIME = dict.fromkeys(("first_timestamp", "start_time", "timestamp"))
# What other fields must be, for a field to count; None for those that have precedence
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "crowdsec:source.scope": {"source.value": "ana", "source.ip": ""},
    "crowdsec:decisions.origin": {"decisions": [{"type": "ban"}]},
    "crowdsec:events.meta.key": {"events": [{"meta": [{"value": "198.51.100.7"}]}]},
    "crowdstrike:name": {"display_name": None},
    "crowdstrike:severity": {"severity_name": None, "score": None},
    "crowdstrike:score": {"severity_name": None, "severity": None},
    "crowdstrike:created_timestamp": NO_TIME,
    "crowdstrike:ioc_type": {"ioc_value": "198.51.100.7"},
    "crowdstrike:ioc_value": {"ioc_type": "ipv4"},
    "crowdstrike:ioc_context.ioc_type": {"ioc_context": [{"ioc_value": "198.51.100.7"}]},
    "crowdstrike:ioc_context.ioc_value": {"ioc_context": [{"ioc_type": "ipv4"}]},
    **{
        f"datadog:attributes.{holder}.workflow.rule.id": {
            f"attributes.{holder}.workflow.rule.name": None
        }
        for holder in ("attributes", "custom")
    },
    "datadog:attributes.attributes.triggeringRuleCase.status": {"attributes.status": None},
    "datadog:attributes.custom.triggeringRuleCase.status": {"attributes.status": None},
    "defender:createdDateTime": {"alerts.firstActivityDateTime": None},
    "defender:alerts.severity": {"alerts.severity": "low"},
    "defender:alerts.createdDateTime": {"alerts.firstActivityDateTime": None},
    "defender:alerts.evidence.roles": {"alerts.evidence": [{"ipAddress": "198.51.100.7"}]},
    "defender:alerts.evidence.fileDetails.filePath": {
        "alerts.evidence": [{"fileDetails": {"fileName": "a.exe"}}]
    },
    "defender-alerts:createdDateTime": {"firstActivityDateTime": None},
    "defender-alerts:evidence.fileDetails.filePath": {
        "evidence": [{"fileDetails": {"fileName": "a.exe"}}]
    },
    "elastic-alerts:_source.kibana.alert.start": {"_source.kibana.alert.original_time": None},
    "elastic-cases:observables.typeKey": {"observables": [{"value": "198.51.100.7"}]},
    "elastic-cases:observables.value": {"observables": [{"typeKey": "observable-type-ipv4"}]},
    "exabeam:rules.ruleId": {"rules": [{"ruleName": "Encoded command"}]},
    **{
        f"exabeam:rules.{name}": {"rules": [{"ruleId": "r1"}]}
        for name in ("ruleName", "ruleReason", "approxLogTime")
    },
    "exabeam:rules.ruleSeverity": {"priority": "LOW", "rules": [{"ruleId": "r1"}]},
    "graylog:event_definition.title": {"message": "m"},
    "graylog:event_definition_id": {"event_definition": None},
    "qradar:last_updated_time": {"last_persisted_time": None},
    "qradar:severity": {"magnitude": None},
    "qradar:log_sources.type_name": {"log_sources": [{"name": "Linux @ host-7"}]},
    "secops:detection.ruleId": {"detection": [{"severity": "high"}]},
    "secops:detectionTime": {"timeWindow": None, "collectionElements": None},
    "secops:timeWindow.startTime": {"collectionElements": None},
    "secops:detection.riskScore": {"detection": [{"ruleName": "r"}]},
    "secops:detection.ruleLabels.key": {"detection": [{"ruleLabels": [{"value": "T1059"}]}]},
    "secops:detection.ruleLabels.value": {"detection": [{"ruleLabels": [{"key": "technique"}]}]},
    "secops:detection.outcomes.key": {"detection": [{"outcomes": [VARIABLE]}]},
    "secops:detection.outcomes.value": {"detection": [{"outcomes": [VARIABLE]}]},
    "secops:detection.detectionFields.key": {"detection": [{"detectionFields": [VARIABLE]}]},
    "secops:detection.detectionFields.value": {"detection": [{"detectionFields": [VARIABLE]}]},
    "sentinel:properties.providerIncidentId": {"properties.providerName": "Microsoft XDR"},
    "sentinel:properties.createdTimeUtc": {"properties.firstActivityTimeUtc": None},
    "sentinel:properties.classificationReason": {"properties.classification": "Undetermined"},
    "sentinel:properties.classificationComment": {"properties.classification": "Undetermined"},
    "splunk:risk_object": {"risk_object_type": "system"},
    "splunk:risk_object_type": {"risk_object": "host-7"},
    "splunk:severity": {"urgency": None},
    "splunk:rule_name": {"rule_title": None},
    "splunk:source": {"rule_title": None, "rule_name": None, "search_name": None},
    "splunk:status": {"status_group": None, "status_label": None, "status_end": None},
    "splunk:threat_match_field": {"threat_match_value": "198.51.100.7"},
    "splunk:threat_match_value": {"threat_match_field": "src_ip"},
    "splunk:extract_artifacts": {"x_machine": "host-7"},
    "splunk:finding_id": {"event_id": None},
    "wazuh:_source.timestamp": {"_source.@timestamp": None},
    "wazuh:_source.rule.title": {"_source.rule.description": None},
    "wazuh:_source.agent.host.hostname": {"_source.agent.name": None},
    "wazuh:_source.agent.host.name": {"_source.agent.name": None},
}
USED_ELSEWHERE = {
    "crowdsec:decisions.duration",  # tells whether a decision is over, before the mapping
    "crowdstrike:product",  # both are compared with settings
    "crowdstrike:type",
    "elastic-cases:totalAlerts",  # whether alerts are requested
    "exabeam:alertId",  # both with `records = "alerts"`
    "exabeam:alertCreationTimestamp",
    "qradar:closing_reason_id",  # requested by ID
    "qradar:source_address_ids",
    "qradar:local_destination_address_ids",
    "qradar:rules.type",
    "sentinel:properties.labels.labelName",  # marks incidents that Tocsin itself created
}


def put(holder: Any, path: str, value: Any) -> None:
    """Put a value at a path, into every item of a list on the way."""
    name, dot, rest = path.partition(".")
    if not dot:
        holder[name] = deepcopy(value)
        return
    inner = holder.get(name)
    if not isinstance(inner, dict | list):
        inner = holder[name] = {}
    for item in inner if isinstance(inner, list) else [inner]:
        if isinstance(item, dict):
            put(item, rest, value)


def fill(record: Any, path: str) -> Iterator[Any]:
    """Yield the record with each value at a path, nested and as a dotted name."""
    for value in VALUES:
        nested = deepcopy(record)
        put(nested, path, value)
        yield nested
        yield {**record, path: value}


def outcome(provider: WindowedProvider, record: Any) -> object:
    try:
        return provider.to_incident(record)
    except (ValueError, LookupError) as error:
        return str(error)


def find_unread(
    name: str, provider: WindowedProvider, stream: str, record: Any, kinds: set[str]
) -> Iterator[str]:
    """Yield the optional fields that make no difference, whatever they hold.

    Adds the kinds of the entities that were found on the way to `kinds`.
    """
    for path in provider.record_contracts[stream].optional:
        bare = deepcopy(record)
        beside = BESIDE.get(f"{name}:{path}", {})
        if path.startswith("attributes.custom."):
            beside = {"attributes.attributes": None, **beside}
        for other, value in beside.items():
            bare = without_field(bare, other)
            if value is not None:
                put(bare, other, value)
        bare = without_field(bare, path)
        without = outcome(provider, bare)
        for changed in fill(bare, path):
            found = outcome(provider, changed)
            kinds |= {one.kind.value for one in getattr(found, "entities", ())}
            if found != without:
                break
        else:
            yield f"{name}:{path}"


@pytest.mark.parametrize("name", SUITES)
def test_each_optional_field_of_a_contract_makes_a_difference(name):
    kinds: set[str] = set()

    async def find() -> set[str]:
        async with SUITES[name]().harness() as harness:
            harness.put()
            await harness.arrive()
            for stream in harness.provider.streams():
                for record in (await harness.provider.sample(stream))[:1]:
                    return set(find_unread(name, harness.provider, stream, record, kinds))
        raise AssertionError("no record")

    assert asyncio.run(find()) - USED_ELSEWHERE == set()
    # The overview of the documentation has them all
    assert kinds <= list_documented_kinds(name.partition("-")[0])


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_each_stream_has_a_contract(suite):
    settings = make_settings(suite.provider, **suite().settings("https://siem.example.com"))
    provider = suite.provider(settings, make_tools())
    assert set(provider.streams()) <= provider.record_contracts.keys()


def test_every_provider_on_an_api_declares_contracts():
    lacking = {
        name
        for name, kind in iterate_providers()
        if issubclass(kind, WindowedProvider) and not kind.record_contracts
    }
    assert lacking == set()


def iterate_providers() -> Iterator[tuple[str, Any]]:
    for point in entry_points(group="tocsin.providers"):
        yield point.name, point.load().tocsin_providers()


def test_ends_of_apis_name_known_plugins_settings_and_pages():
    content = files("tocsin_connectors.siem").joinpath("api_retirements.toml").read_text("utf-8")
    kinds = dict(iterate_providers())
    for plugin in tomllib.loads(content):
        assert kinds[plugin].retirements == load_retirements(plugin)
        for retirement in load_retirements(plugin):
            assert isinstance(retirement, ApiRetirement)
            assert retirement.settings.keys() <= kinds[plugin].Settings.model_fields.keys()
            assert retirement.source.startswith("https://")
