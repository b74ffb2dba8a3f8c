"""Mapping of Zeek's JSON logs."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Alert, Entity, EntityKind, Incident, NetworkFlow, Severity
from tocsin_connectors.siem.zeek import Zeek, tocsin_providers
from tocsin_connectors.siem.zeek.events import build_event
from tocsin_connectors.siem.zeek.mapping import build_incident

GUESSER, BASTION = (Entity(EntityKind.IP, f"192.0.2.{number}") for number in (9, 80))


def notice(**changes: Any) -> dict[str, Any]:
    """An upload to an administrative share that BZAR detected; `None` leaves a field out."""
    fields = {
        "ts": 1794573296.789012,
        "uid": "CxT9Pd3lkGQ1sX2a5f",
        "id.orig_h": GUESSER.value,
        "id.orig_p": 49731,
        "id.resp_h": BASTION.value,
        "id.resp_p": 445,
        "proto": "tcp",
        "note": "ATTACK::Lateral_Movement",
        "msg": "Detected SMB::FILE_WRITE to admin file share '\\\\\\\\files\\\\ADMIN$tools.exe'",
        "sub": "T1021.002 Remote Services: SMB/Windows Admin Shares + T1570 Lateral Tool Transfer",
        "peer_descr": "worker-1",
        "actions": ["Notice::ACTION_LOG"],
        "email_dest": [],
        "suppress_for": 3600.0,
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


@pytest.fixture
def provider(make_feed, tmp_path):
    return make_feed(tmp_path / "notice.log", Zeek).provider


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Zeek


def test_notice_becomes_incident(provider):
    incident = provider.to_incident(notice())
    at = datetime(2026, 11, 13, 12, 34, 56, 789012, UTC)
    assert incident == Incident(
        external_id="ATTACK::Lateral_Movement/192.0.2.9/2026-11-13T12:00:00+00:00",
        title=notice()["msg"],
        description=(
            f"Notice type: ATTACK::Lateral_Movement\nDetails: {notice()['sub']}\nSensor: worker-1"
        ),
        severity=Severity.HIGH,
        severity_assumed=True,
        occurred_at=at,
        techniques=("T1021.002", "T1570"),
        tactics=("TA0008",),
        entities=(GUESSER, BASTION),
        sources=(GUESSER,),
        targets=(BASTION,),
        alerts=(
            Alert(
                external_id=incident.alerts[0].external_id,
                title=notice()["msg"],
                severity=Severity.HIGH,
                occurred_at=at,
                rule="ATTACK::Lateral_Movement",
                flow=NetworkFlow(
                    source=GUESSER.value,
                    source_port=49_731,
                    target=BASTION.value,
                    target_port=445,
                    protocol="tcp",
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    "ts", [1794573296.789012, 1794573296789, "2026-11-13T12:34:56.789012Z", 1794573296]
)
def test_times_of_every_format(provider, ts):
    found = provider.to_incident(notice(ts=ts)).occurred_at
    assert found.replace(microsecond=0) == datetime(2026, 11, 13, 12, 34, 56, tzinfo=UTC)


@pytest.mark.parametrize("ts", [None, "yesterday", "2026-11-13T12:34:56", 1e300, True, [1]])
def test_record_without_a_time_is_rejected(provider, ts):
    for record in (notice(ts=ts), notice(ts=ts, note=None)):
        with pytest.raises(ValueError, match=r"ts is|time"):
            provider.to_incident(record)


def test_guessed_passwords_are_aimed_at_the_sampled_servers(provider):
    incident = provider.to_incident(
        notice(
            **dict.fromkeys(["uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto"]),
            note="SSH::Password_Guessing",
            sub="Sampled servers:  192.0.2.80, 192.0.2.80, 192.0.2.81",
            src=GUESSER.value,
        )
    )
    assert incident.sources == (GUESSER,)
    assert [target.value for target in incident.targets] == ["192.0.2.80", "192.0.2.81"]
    assert incident.techniques == ("T1110",)


@pytest.mark.parametrize(
    ("note", "sources", "targets"),
    [
        ("Scan::Port_Scan", ["192.0.2.9"], ["192.0.2.80"]),
        ("HTTP::SQL_Injection_Victim", ["192.0.2.80"], ["192.0.2.9"]),
        ("Software::Vulnerable_Version", [], []),
    ],
)
def test_roles_of_notices_without_a_connection(provider, note, sources, targets):
    ends = {"id.orig_h": None, "id.resp_h": None, "src": "192.0.2.9", "dst": "192.0.2.80"}
    incident = provider.to_incident(notice(note=note, **ends))
    assert [source.value for source in incident.sources] == sources
    assert [target.value for target in incident.targets] == targets


SHA1 = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (
            {"note": "Intel::Notice", "sub": "bad.evil.example"},
            {("domain", "bad.evil.example")},
        ),
        (
            {"note": "Intel::Notice", "sub": "http://evil.example/a"},
            {("url", "http://evil.example/a"), ("domain", "evil.example")},
        ),
        (
            {
                "note": "TeamCymruMalwareHashRegistry::Match",
                "sub": f"https://www.virustotal.com/gui/search/{SHA1}",
                "file_desc": "http://evil.example/tools.exe",
            },
            {("file_hash", SHA1), ("url", "http://evil.example/tools.exe")},
        ),
        (
            {"note": "SSL::Invalid_Server_Cert", "sub": "CN=*.shop.example,O=Shop,C=US"},
            {("domain", "shop.example")},
        ),
        (
            {"note": "SSL::Invalid_Server_Cert", "sub": "CN=localhost.localdomain,O=Default"},
            set(),  # the certificate that an appliance is delivered with
        ),
        (
            {"note": "SSH::Interesting_Hostname_Login", "sub": "mail.example"},
            {("domain", "mail.example")},
        ),
        (
            {
                "note": "CVE_2021_44228::LOG4J_ATTEMPT_HEADER",
                "sub": "uri='/x' user-agent=y.example",
            },
            {("cve", "CVE-2021-44228")},
        ),
        ({"note": "Signatures::Sensitive_Signature", "sub": "GET evil.example"}, set()),
    ],
)
def test_subject_is_read_by_type(provider, changes, found):
    entities = provider.to_incident(notice(**changes)).entities
    assert {(entity.kind, entity.value) for entity in entities if entity.kind != "ip"} == found


@pytest.mark.parametrize(
    ("note", "severity"),
    [
        ("Heartbleed::SSL_Heartbeat_Attack_Success", Severity.CRITICAL),
        ("SSL::Certificate_Expires_Soon", Severity.INFORMATIONAL),
        ("SSL::Weak_Key", Severity.LOW),
        ("Site::Anything", Severity.MEDIUM),
    ],
)
def test_severities_are_assumed_by_type(provider, note, severity):
    incident = provider.to_incident(notice(note=note))
    assert (incident.severity, incident.severity_assumed) == (severity, True)


def test_severities_of_the_site_count(make_feed, tmp_path):
    severities = {"Site::*": "Critical", "Scan::Port_Scan": "Informational"}
    provider = make_feed(tmp_path / "notice.log", Zeek, severities=severities).provider
    found = [
        provider.to_incident(notice(note=note)) for note in ("Site::Beacon", "Scan::Port_Scan")
    ]
    assert [incident.severity for incident in found] == ["Critical", "Informational"]
    assert not any(incident.severity_assumed for incident in found)


@pytest.mark.parametrize("note", ["CaptureLoss::Too_Much_Loss", "PacketFilter::Dropped_Packets"])
def test_notices_about_the_sensor_are_no_incidents(provider, note):
    assert provider.to_incident(notice(note=note)) is None


def test_notices_of_one_type_source_and_hour_are_one_incident(provider):
    records = [notice(), notice(ts=1794573000.5, **{"id.resp_h": "192.0.2.81"})]
    (folded,) = provider.fold([provider.to_incident(record) for record in records])
    assert folded.occurred_at == datetime(2026, 11, 13, 12, 30, 0, 500000, UTC)
    assert [target.value for target in folded.targets] == ["192.0.2.80", "192.0.2.81"]
    assert len(folded.alerts) == 2


@pytest.mark.parametrize(
    "changes", [{"ts": 1794573296.789013}, {"uid": "C2"}, {"msg": "x"}, {"n": 2}]
)
def test_fields_that_distinguish_alerts(provider, changes):
    one, other = (provider.to_incident(record).alerts for record in (notice(), notice(**changes)))
    assert one != other
    assert provider.to_incident(notice(email_dest=["a@b.example"])).alerts == one


async def test_tables_are_named_by_the_check(make_feed, tmp_path):
    (tmp_path / "notice.log").write_bytes(b"#separator \\x09\n#set_separator\t,\n")
    feed = make_feed(tmp_path / "notice.log", Zeek)
    (problem,) = (await feed.provider.check()).problems
    assert "notice.log is in TSV format: set LogAscii::use_json = T" in problem


async def test_archived_logs_are_not_read_again(make_feed, tmp_path, compress):
    """Zeek's archive moves a log into the folder of its day, and compresses it there."""
    current, day = tmp_path / "current", tmp_path / "2026-11-13"
    current.mkdir()
    feed = make_feed(tmp_path / "*" / "notice.*", Zeek)
    (current / "notice.log").write_bytes(orjson.dumps(notice()) + b"\n")
    await feed.read()
    day.mkdir()
    rotated = (current / "notice.log").rename(day / "notice.13:00:00-14:00:00.log")
    (current / "notice.log").write_bytes(orjson.dumps(notice(note="Site::Later")) + b"\n")
    compress(rotated)
    await feed.read()
    assert [name.partition("/")[0] for name in feed.ids] == [
        "ATTACK::Lateral_Movement",
        "Site::Later",
    ]


LOGS = {
    "dns": (
        {"query": "shop.example", "qtype_name": "A", "answers": ["www.shop.example", "192.0.2.5"]},
        "dns: shop.example resolves to www.shop.example, 192.0.2.5",
        ("shop.example", "resolves-to", "192.0.2.5"),
    ),
    "http": (
        {"method": "GET", "host": "shop.example", "uri": "/a?b", "status_code": 200},
        "http: GET http://shop.example:445/a?b",
        ("192.0.2.9", "connected-to", "shop.example"),
    ),
    "ssl": (
        {"server_name": "shop.example"},
        "tls: shop.example",
        ("192.0.2.9", "connected-to", "shop.example"),
    ),
    "smtp": (
        {"mailfrom": "a@evil.example", "rcptto": ["b@shop.example"], "proto": "tcp"},
        "tcp",
        ("a@evil.example", "sent-to", "b@shop.example"),
    ),
    "conn": (
        {"proto": "tcp", "service": "ssh", "orig_bytes": 10, "resp_bytes": 20},
        "ssh: 10 bytes sent, 20 received",
        ("192.0.2.9", "connected-to", "192.0.2.80"),
    ),
}


@pytest.mark.parametrize("log", LOGS)
def test_events_of_logs(provider, log):
    fields, summary, relation = LOGS[log]
    ends = {name: value for name, value in notice().items() if name.startswith(("ts", "id."))}
    record = ends | fields
    assert provider.to_incident(record) is None
    event = provider.to_event(record)
    assert event.summary == f"{summary} (192.0.2.9:49731 to 192.0.2.80:445)"
    assert relation in {(one.source.value, one.type, one.target.value) for one in event.relations}
    assert {GUESSER, BASTION} <= set(event.entities)


FIELDS = (*notice(), "src", "host", "uri", "query", "answers", "rcptto", "file_desc")


@settings(max_examples=30)
@given(record=st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)))
def test_any_record_is_mapped_or_refused(record):
    with contextlib.suppress(ValueError):
        build_incident(record, timedelta(hours=1), {})
    with contextlib.suppress(ValueError):
        build_event(record)
