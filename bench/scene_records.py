"""Vendor-shaped records of scenes, through the mapping of each provider.

A scene gives what matters; identifiers and times are filled in here, in each vendor's own fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

import tocsin_connectors.siem.crowdsec.events as crowdsec_events
import tocsin_connectors.siem.crowdsec.mapping as crowdsec
import tocsin_connectors.siem.crowdstrike.mapping as crowdstrike
import tocsin_connectors.siem.defender.mapping as defender
import tocsin_connectors.siem.elastic.mapping as elastic
import tocsin_connectors.siem.ocsf.events as ocsf_events
import tocsin_connectors.siem.ocsf.mapping as ocsf
import tocsin_connectors.siem.opensearch.mapping as opensearch
import tocsin_connectors.siem.qradar.mapping as qradar
import tocsin_connectors.siem.secops.mapping as secops
import tocsin_connectors.siem.sentinel.entities as sentinel_entities
import tocsin_connectors.siem.sentinel.mapping as sentinel
import tocsin_connectors.siem.splunk.mapping as splunk
import tocsin_connectors.siem.suricata.events as suricata_events
import tocsin_connectors.siem.suricata.mapping as suricata
import tocsin_connectors.siem.wazuh.groups as wazuh
from tocsin import Incident, MappingTemplate, SiemEvent
from tocsin.testing.investigation import NOON
from tocsin_connectors.siem import push
from tocsin_connectors.siem.records import union

Record = dict[str, Any]
_HOUR = timedelta(hours=1)


def build_incident(shape: str, number: int, given: Mapping[str, Any]) -> Incident:
    """Return the incident of a record in the shape of a provider."""
    record = dict(given)
    at = NOON - timedelta(minutes=record.pop("at", 60))
    return _SHAPES[shape](number, record, at)


def build_events(shape: str, number: int, given: Mapping[str, Any]) -> Iterator[SiemEvent]:
    """Yield the events of a record, as the event search of its provider maps them."""
    record = dict(given)
    at = NOON - timedelta(minutes=record.pop("at", 60))
    for repetition in range(record.pop("times", 1)):
        moment = at + timedelta(seconds=repetition)
        if shape == "suricata":
            yield suricata_events.build_event(_suricata_record(record, moment))
        elif shape == "ocsf":
            uid = {"uid": f"event-{number}-{repetition}"}
            yield ocsf_events.build_event(
                {**record, "time": _milliseconds(moment), "metadata": uid}
            )
        elif shape == "crowdsec":
            alert = _crowdsec_alert(number, record, moment)
            lines = (
                line
                for entity in crowdsec.find_entities(alert)
                for line in crowdsec_events.find_lines(alert, entity)
            )
            yield from {line.external_id: line for line in lines}.values()


def _suricata_record(record: Record, at: datetime) -> Record:
    alert = dict(record.get("alert", {}))
    technique = alert.pop("technique", None)
    if alert:
        metadata = {"mitre_technique_id": [technique]} if technique else {}
        signature = sum(alert["signature"].encode())
        alert = {"signature_id": signature, "action": "allowed", "metadata": metadata, **alert}
    common = {"timestamp": at.isoformat(), "event_type": "alert" if alert else "flow"}
    ports = {"proto": "TCP", "src_port": 50123, "dest_port": 443}
    return {**common, **ports, **record, **({"alert": alert} if alert else {})}


def _suricata(_: int, record: Record, at: datetime) -> Incident:
    return suricata.build_incident(_suricata_record(record, at), _HOUR)


def _crowdsec_alert(number: int, record: Record, at: datetime) -> Record:
    meta = {"source_ip": record["source"], **record["meta"]}
    line = {
        "timestamp": at.isoformat(),
        "meta": [{"key": key, "value": value} for key, value in meta.items()],
    }
    return crowdsec.stabilize_decisions(
        {
            "id": number,
            "created_at": at.isoformat(),
            "start_at": at.isoformat(),
            "scenario": record["scenario"],
            "machine_id": "sensor",
            "source": {"scope": "Ip", "value": record["source"], "ip": record["source"]},
            "events": [line],
            "decisions": [],
        }
    )


def _crowdsec(number: int, record: Record, at: datetime) -> Incident:
    return crowdsec.build_incident(_crowdsec_alert(number, record, at))


def _ecs(number: int, record: Record, at: datetime) -> Incident:
    title, technique = record.pop("title"), record.pop("technique", None)
    severity = record.pop("severity", "medium")
    threat = [{"technique": [{"id": technique}]}] if technique else []
    source = {
        "@timestamp": at.isoformat(),
        "kibana.alert.severity": severity,
        "kibana.alert.rule.name": title,
        "kibana.alert.rule.threat": threat,
        **record,
    }
    settings: Any = SimpleNamespace(kibana="https://kibana.example", alerts_index=".alerts")
    return elastic.build_alert_incident({"_id": str(number), "_source": source}, settings)


def _opensearch(number: int, record: Record, at: datetime) -> Incident:
    alert = {"id": f"alert-{number}", "start_time": at.isoformat(), "state": "ACTIVE"}
    documents = [{"document": orjson.dumps(document)} for document in record.pop("documents")]
    listed = [{"document": one["document"].decode()} for one in documents]
    finding = {"id": f"finding-{number}", "timestamp": _milliseconds(at), "document_list": listed}
    incident = opensearch.build_incident({**alert, **record}, "detector", "Network")
    return opensearch.attach_findings(incident, [finding])


def _splunk(number: int, record: Record, at: datetime) -> Incident:
    common = {"event_id": f"finding-{number}", "_time": at.isoformat(), "status": "1"}
    return splunk.build_incident({**common, **record}, None)


def _wazuh(number: int, record: Record, at: datetime) -> Incident:
    agent = {"id": "001", **record.pop("agent")}
    source = {"@timestamp": at.isoformat(), "agent": agent, **record}
    return wazuh.build_incident([{"_id": str(number), "_source": source}], _HOUR)


class _QRadarLookups:
    """Answers what the console's lookups would, from the record itself."""

    def offense_type(self, record: Record) -> str | None:
        return {0: "Source IP", 1: "Destination IP"}.get(record["offense_type"])

    def closing_reason(self, _: Record) -> None:
        return None

    def rule(self, _: Record) -> None:
        return None

    def addresses(self, record: Record) -> list[str]:
        return [*record["sources"], *record["destinations"]]

    def sources(self, record: Record) -> list[str]:
        return list(record["sources"])

    def destinations(self, record: Record) -> list[str]:
        return list(record["destinations"])


def _qradar(number: int, record: Record, at: datetime) -> Incident:
    moment = _milliseconds(at)
    times = {"start_time": moment, "last_updated_time": moment, "last_persisted_time": moment}
    lookups: Any = _QRadarLookups()
    offense = {"id": number, "status": "OPEN", **times, **record}
    return qradar.build_incident(offense, lookups, "https://qradar.example")


def _sentinel(number: int, record: Record, at: datetime) -> Incident:
    entities = [{"id": str(place), **one} for place, one in enumerate(record.pop("entities"))]
    technique = record.pop("technique", None)
    properties = {
        "lastModifiedTimeUtc": at.isoformat(),
        "firstActivityTimeUtc": at.isoformat(),
        "status": "New",
        "additionalData": {"techniques": [technique] if technique else []},
        **record,
    }
    incident = sentinel.build_incident({"name": str(number), "properties": properties}, None, "t")
    roles = sentinel_entities.find_roles(entities)
    found = union([sentinel_entities.find_entities(entities)])
    return replace(incident, entities=found, sources=roles.sources, targets=roles.targets)


def _defender(number: int, record: Record, at: datetime) -> Incident:
    alert = {
        "id": f"alert-{number}",
        "title": record["displayName"],
        "severity": record["severity"],
        "createdDateTime": at.isoformat(),
        "mitreTechniques": record.pop("mitre", []),
        "evidence": record.pop("evidence"),
    }
    times = {"createdDateTime": at.isoformat(), "lastUpdateDateTime": at.isoformat()}
    return defender.build_incident(
        {"id": str(number), "status": "active", **times, **record, "alerts": [alert]}
    )


def _crowdstrike(number: int, record: Record, at: datetime) -> Incident:
    times = {"updated_timestamp": at.isoformat(), "timestamp": at.isoformat()}
    common = {"composite_id": f"cid:ind:{number}", "status": "new", **times}
    return crowdstrike.build_incident({**common, **record}, "https://falcon.example")


def _secops(number: int, record: Record, at: datetime) -> Incident:
    technique = record.pop("technique", None)
    labels = [{"key": "technique", "value": technique}] if technique else []
    rule = {
        "ruleName": record["ruleName"],
        "severity": record["severity"],
        "ruleLabels": labels,
    }
    references = [{"event": event} for event in record["events"]]
    return secops.build_incident(
        {
            "id": f"de_{number}",
            "createdTime": at.isoformat(),
            "detectionTime": at.isoformat(),
            "detection": [rule],
            "collectionElements": [{"references": references}],
        }
    )


def _ocsf(number: int, record: Record, at: datetime) -> Incident:
    info = {"uid": f"finding-{number}", **record.pop("finding_info")}
    common = {"class_uid": 2004, "time": _milliseconds(at), "status_id": 1}
    return ocsf.build_incident({**common, **record, "finding_info": info})


def _alertmanager(number: int, record: Record, at: datetime) -> Incident:
    alert = {"fingerprint": str(number), "status": "firing", "startsAt": at.isoformat(), **record}
    return _push("alertmanager", {"alerts": [alert]}, at)


def _graylog(number: int, record: Record, at: datetime) -> Incident:
    common = {"id": str(number), "timestamp": at.isoformat(), "group_by_fields": {}}
    event = {**common, **record}
    return _push("graylog", {"event": event, "event_definition_title": event["message"]}, at)


def _own(number: int, record: Record, at: datetime) -> Incident:
    common = {"external_id": str(number), "occurred_at": at.isoformat()}
    return _push("incident", {**common, **record}, at)


def _push(name: str, body: Record, at: datetime) -> Incident:
    text = (Path(push.__file__).parent / "mappings" / f"{name}.json.j2").read_text()
    received = MappingTemplate(text, name).read(orjson.dumps(body), at)
    [incident] = [incident for part in received for incident in part.incidents]
    return incident


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1_000)


_SHAPES: Mapping[str, Callable[[int, Record, datetime], Incident]] = {
    "alertmanager": _alertmanager,
    "crowdsec": _crowdsec,
    "crowdstrike": _crowdstrike,
    "defender": _defender,
    "ecs": _ecs,
    "graylog": _graylog,
    "ocsf": _ocsf,
    "opensearch": _opensearch,
    "push": _own,
    "qradar": _qradar,
    "secops": _secops,
    "sentinel": _sentinel,
    "splunk": _splunk,
    "suricata": _suricata,
    "wazuh": _wazuh,
}
