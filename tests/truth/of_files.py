"""SIEMs that write to a file, which is rotated in every way there is."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any, ClassVar

import orjson

from tocsin import Entity, EntityKind, IncidentStatus, Severity
from tocsin.testing import Case
from tocsin_connectors.siem.ecs import Ecs
from tocsin_connectors.siem.falco import Falco
from tocsin_connectors.siem.ocsf import Ocsf
from tocsin_connectors.siem.suricata import Suricata
from tocsin_connectors.siem.zeek import Zeek
from truth.entrant import Course, Known, ReadEntrant, known_of, stored
from truth.log_file import LogFile


class OfFiles(ReadEntrant):
    """A provider whose SIEM writes to a file that is rotated, in every way there is."""

    rotation = timedelta(minutes=97)

    @abstractmethod
    def record(self, case: Case) -> dict[str, Any]:
        """Return the record that is written of a version."""

    @abstractmethod
    def malformed(self, case: Case) -> dict[str, Any]:
        """Return a record that nobody can understand."""

    @abstractmethod
    def truth(self, cases: Iterable[Case]) -> dict[str, Known]:
        """Return what is to be known of these versions, which are in order."""

    @asynccontextmanager
    async def begin(self, day, clock, folder) -> AsyncIterator[Course]:
        path = folder / "siem.json"
        log = LogFile(path, clock, seed=7)
        late: list[tuple[datetime, int, Case]] = []
        rotated_at, number = clock.now(), 0

        def unfold() -> None:
            nonlocal rotated_at, number
            for case in day.due(clock.now()):
                number += 1
                heappush(late, (case.visible_at or case.changed_at, number, case))
            while late and late[0][0] <= clock.now():
                case = heappop(late)[2]
                log.write(self.malformed(case) if case.malformed else self.record(case))
            if clock.now() - rotated_at >= self.rotation:
                rotated_at = clock.now()
                log.rotate()
            if not late and clock.now() >= day.settled_at:
                log.finish()

        readable = [case for case in day.cases if not case.malformed]
        yield Course(
            settings={"path": str(path)},
            play=unfold,
            truth=lambda: self.truth(readable),
            unreadable=lambda: {
                orjson.dumps(self.malformed(case)) for case in day.cases if case.malformed
            },
        )


class OcsfFiles(OfFiles):
    """Findings of which each version is a record, in whatever order they come."""

    name = "ocsf"
    kind = Ocsf
    severities: ClassVar = {severity: place for place, severity in enumerate(Severity, 1)}
    statuses: ClassVar = {IncidentStatus.NEW: 1, IncidentStatus.ACTIVE: 2, IncidentStatus.CLOSED: 4}
    observables: ClassVar = {EntityKind.HOST: 1, EntityKind.IP: 2, EntityKind.USER: 4}

    def record(self, case: Case) -> dict[str, Any]:
        return {
            "class_uid": 2004,
            "severity_id": self.severities.get(case.severity, 99),
            "severity": str(case.severity),
            "status_id": self.statuses[case.status],
            "time_dt": case.changed_at.isoformat(),
            "finding_info": {
                "uid": case.id,
                "title": case.title,
                "desc": case.description,
                "created_time_dt": case.created_at.isoformat(),
            },
            "observables": [
                {"type_id": self.observables[entity.kind], "value": entity.value}
                for entity in case.entities
                if entity.kind in self.observables
            ],
        }

    def malformed(self, case: Case) -> dict[str, Any]:
        return {"class_uid": 2004, "finding_info": case.number}

    def truth(self, cases: Iterable[Case]) -> dict[str, Known]:
        return {case.id: self._known(case) for case in cases}

    def _known(self, case: Case) -> Known:
        return known_of(
            case,
            title=stored(case.title.replace("\0", "").strip()[:4096]),
            description=case.description.replace("\0", "").strip()[:4096],
            merged_into=None,
            alerts=1,
            entities=frozenset(
                entity for entity in case.entities if entity.kind in self.observables
            ),
        )


class SuricataFiles(OfFiles):
    """Alerts, each version being one; those of one signature within an hour are an incident."""

    name = "suricata"
    kind = Suricata

    def record(self, case: Case) -> dict[str, Any]:
        return {
            "event_type": "alert",
            "timestamp": case.changed_at.strftime("%Y-%m-%dT%H:%M:%S.%f+0000"),
            "flow_id": case.number,
            "src_ip": f"192.0.2.{case.number % 250}",
            "dest_ip": f"198.51.100.{case.changed_at.second}",
            "alert": {
                "gid": 1,
                "signature_id": case.number,
                "signature": f"Rule {case.number}",
                "severity": 1 + case.number % 3,
            },
        }

    def malformed(self, case: Case) -> dict[str, Any]:
        return {"event_type": "alert", "alert": case.number}

    def truth(self, cases: Iterable[Case]) -> dict[str, Known]:
        grouped: dict[str, list[Case]] = {}
        for case in cases:
            hour = case.changed_at.replace(minute=0, second=0, microsecond=0)
            name = f"1:{case.number}/192.0.2.{case.number % 250}/{hour.isoformat()}"
            grouped.setdefault(name, []).append(case)
        return {name: self._known(group) for name, group in grouped.items()}

    def _known(self, group: list[Case]) -> Known:
        records = [self.record(case) for case in group]
        addresses = {record[key] for record in records for key in ("src_ip", "dest_ip")}
        return Known(
            title=records[0]["alert"]["signature"],
            severity=(Severity.HIGH, Severity.MEDIUM, Severity.LOW)[group[0].number % 3],
            description="Suricata saw this network traffic.",
            entities=frozenset(Entity(EntityKind.IP, address) for address in addresses),
            alerts=len(Counter(record["timestamp"] for record in records)),
        )


class ZeekFiles(OfFiles):
    """Notices, each version being one; those of one type within an hour are an incident."""

    name = "zeek"
    kind = Zeek
    severities: ClassVar = ("Medium", "Low", "Informational")
    notes: ClassVar = ("Site::Beacon", "Scan::Port_Scan", "SSL::Certificate_Expires_Soon")

    def record(self, case: Case) -> dict[str, Any]:
        return {
            "ts": case.changed_at.isoformat(),
            "uid": f"C{case.number}",
            "id.orig_h": f"192.0.{2 + case.number // 250}.{case.number % 250}",
            "id.resp_h": f"198.51.100.{case.changed_at.second}",
            "note": self.notes[case.number % 3],
            "msg": f"Notice {case.number}",
        }

    def malformed(self, case: Case) -> dict[str, Any]:
        return {"note": "Site::Beacon", "ts": {"number": case.number}}

    def truth(self, cases: Iterable[Case]) -> dict[str, Known]:
        grouped: dict[str, list[Case]] = {}
        for case in cases:
            record = self.record(case)
            hour = case.changed_at.replace(minute=0, second=0, microsecond=0).isoformat()
            grouped.setdefault(f"{record['note']}/{record['id.orig_h']}/{hour}", []).append(case)
        return {name: self._known(group) for name, group in grouped.items()}

    def _known(self, group: list[Case]) -> Known:
        records = [self.record(case) for case in group]
        addresses = {record[key] for record in records for key in ("id.orig_h", "id.resp_h")}
        return Known(
            title=records[0]["msg"],
            severity=Severity(self.severities[group[0].number % 3]),
            description=f"Notice type: {records[0]['note']}",
            entities=frozenset(Entity(EntityKind.IP, address) for address in addresses),
            alerts=len(Counter(record["ts"] for record in records)),
        )


class FalcoFiles(OfFiles):
    """Alerts, each version being one; those of one rule and host within an hour are an incident."""

    name = "falco"
    kind = Falco
    priorities: ClassVar = {"Critical": Severity.CRITICAL, "Notice": Severity.LOW}

    def record(self, case: Case) -> dict[str, Any]:
        return {
            "time": case.changed_at.isoformat(),
            "rule": f"Rule {case.number}",
            "priority": tuple(self.priorities)[case.number % 2],
            "hostname": "node-1",
            "message": f"Message {case.number}",
            "output_fields": {"fd.sip": f"198.51.100.{case.changed_at.second}"},
        }

    def malformed(self, case: Case) -> dict[str, Any]:
        return {"rule": f"Rule {case.number}", "time": {"number": case.number}}

    def truth(self, cases: Iterable[Case]) -> dict[str, Known]:
        grouped: dict[str, list[Case]] = {}
        for case in cases:
            hour = case.changed_at.replace(minute=0, second=0, microsecond=0).isoformat()
            grouped.setdefault(f"Rule {case.number}/node-1/{hour}", []).append(case)
        return {name: self._known(group) for name, group in grouped.items()}

    def _known(self, group: list[Case]) -> Known:
        records = [self.record(case) for case in group]
        return Known(
            title=records[0]["rule"],
            severity=self.priorities[records[0]["priority"]],
            description=records[0]["message"],
            entities=frozenset(
                [
                    Entity(EntityKind.HOST, "node-1"),
                    *(Entity(EntityKind.IP, one["output_fields"]["fd.sip"]) for one in records),
                ]
            ),
            alerts=len(Counter(record["time"] for record in records)),
        )


class EcsFiles(OfFiles):
    """Alerts of Elastic Security of which each version is a record, in whatever order they come."""

    name = "ecs"
    kind = Ecs
    statuses: ClassVar = {
        IncidentStatus.NEW: "open",
        IncidentStatus.ACTIVE: "acknowledged",
        IncidentStatus.CLOSED: "closed",
    }
    fields: ClassVar = {
        EntityKind.HOST: "host.name",
        EntityKind.IP: "source.ip",
        EntityKind.USER: "user.name",
    }

    def record(self, case: Case) -> dict[str, Any]:
        return {
            "@timestamp": case.changed_at.isoformat(),
            "event.kind": "signal",
            "kibana.alert.uuid": case.id,
            "kibana.alert.rule.name": case.title,
            "kibana.alert.reason": f"Reason: {case.description}",
            "kibana.alert.severity": str(case.severity).lower(),
            "kibana.alert.workflow_status": self.statuses[case.status],
            "kibana.alert.original_time": case.created_at.isoformat(),
            **{
                name: [entity.value for entity in case.entities if entity.kind is kind]
                for kind, name in self.fields.items()
            },
        }

    def malformed(self, case: Case) -> dict[str, Any]:
        return {"event.kind": "signal", "@timestamp": case.number}

    def truth(self, cases: Iterable[Case]) -> dict[str, Known]:
        return {case.id: self._known(case) for case in cases}

    def _known(self, case: Case) -> Known:
        return known_of(
            case,
            title=stored(case.title.replace("\0", "").strip()[:4096]),
            description=f"Reason: {case.description}".replace("\0", "").strip()[:4096],
            merged_into=None,
            alerts=1,
            entities=frozenset(entity for entity in case.entities if entity.kind in self.fields),
        )
