"""Events from the lines and decisions of alerts."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, RelationType
from tocsin_connectors.siem.crowdsec.events import find_decisions, find_lines
from tocsin_connectors.siem.crowdsec.go_time import format_duration, format_short, parse_duration

from .test_alerts import JSON, alert, ban

ATTACKER = Entity(EntityKind.IP, "203.0.113.7")
NEIGHBOR = Entity(EntityKind.IP, "203.0.113.8")
ROOT, BASTION = Entity(EntityKind.USER, "root"), Entity(EntityKind.HOST, "bastion")
FAILED = {
    "log_type": "ssh_failed-auth",
    "machine": "bastion",
    "service": "ssh",
    "source_ip": "203.0.113.7",
    "target_user": "root",
}
RANGE = {"scope": "Range", "value": "203.0.113.0/24", "ip": "203.0.113.7"}
CREATED_AT = datetime(2026, 11, 20, 9, 20, 21, tzinfo=UTC)


def line(second: int = 50, /, **meta: str) -> dict:
    pairs = [{"key": key, "value": value} for key, value in meta.items()]
    return {"meta": pairs, "timestamp": f"2026-11-20 09:19:{second} +0000 UTC"}


def lines(*events, entity=ATTACKER, **changes):
    return list(find_lines(alert(events=list(events), **changes), entity))


def decisions(*found, entity=ATTACKER, after=timedelta(0), **changes):
    record = alert(decisions=list(found), **changes)
    return list(find_decisions(record, entity, CREATED_AT + after))


def test_log_line_is_an_event():
    [event] = lines(line(51, **FAILED))
    assert event.summary == "ssh failed-auth for root from 203.0.113.7 on bastion"
    assert event.occurred_at == datetime(2026, 11, 20, 9, 19, 51, tzinfo=UTC)
    assert set(event.entities) == {ATTACKER, ROOT, BASTION}
    assert event.fields["log_type"] == "ssh_failed-auth"
    assert event.fields["alert"] == "7@2026-11-20T09:20:21Z"
    assert event.fields["scenario"] == "crowdsecurity/ssh-bf"


def test_failed_and_successful_sign_ins_have_their_relations():
    failed, entered = lines(line(**FAILED), line(**FAILED, auth_status="success"))
    told = {(relation.source, relation.type, relation.target) for relation in failed.relations}
    assert told == {
        (ATTACKER, RelationType.CONNECTED_TO, BASTION),
        (ATTACKER, RelationType.RELATED_TO, ROOT),
    }
    more = {
        (relation.source, relation.type, relation.target) for relation in entered.relations
    } - told
    assert more == {(ROOT, RelationType.LOGGED_ON_TO, BASTION)}


def test_request_is_summarized_by_its_target():
    meta = {
        "log_type": "http_access-log",
        "http_verb": "GET",
        "http_path": "/.env",
        "http_status": "404",
        "target_fqdn": "shop.example",
        "source_ip": "203.0.113.7",
    }
    [event] = lines(line(**meta))
    assert event.summary == "http access-log GET /.env 404 from 203.0.113.7 on shop.example"


def test_sparse_line_is_summarized_by_its_scenario():
    [event] = lines(line())
    assert event.summary == "crowdsecurity/ssh-bf from 203.0.113.7"
    assert event.entities == (ATTACKER,)


def test_equal_lines_are_separate_events_with_stable_ids():
    twice = [line(**FAILED), line(**FAILED)]
    first, second = lines(*twice)
    assert first.external_id != second.external_id
    [again, *_] = lines(line(**FAILED), id=8, scenario="crowdsecurity/ssh-slow-bf")
    assert again.external_id == first.external_id
    [elsewhere] = lines(line(**FAILED), machine_id="another")
    [later] = lines(line(51, **FAILED))
    assert first.external_id not in (elsewhere.external_id, later.external_id)


def test_range_lines_match_only_their_address():
    events = [line(**FAILED), line(**{**FAILED, "source_ip": NEIGHBOR.value}), line()]
    [own] = lines(*events, source=RANGE)
    assert ATTACKER in own.entities
    [other] = lines(*events, source=RANGE, entity=NEIGHBOR)
    assert ATTACKER not in other.entities


def test_all_lines_counted_for_a_user_match_the_user():
    source = {"scope": "Username", "value": "ann", "ip": "ann"}
    ann = Entity(EntityKind.USER, "ann")
    [event] = lines(line(source_ip="203.0.113.7"), source=source, entity=ann)
    assert set(event.entities) == {ann, ATTACKER}


@pytest.mark.parametrize("timestamp", [None, "soon", "0001-01-01 00:00:00 +0000 UTC"])
def test_line_without_time_uses_start_of_alert(timestamp):
    [event] = lines({**line(**FAILED), "timestamp": timestamp})
    assert event.occurred_at == datetime(2026, 11, 20, 9, 19, 51, tzinfo=UTC)


def test_alert_without_lines_and_decisions_has_no_events():
    assert lines() == decisions() == []


def test_ban_summary_has_duration_and_origin():
    left = ban("3h44m59.39s", value="203.0.113.7", scope="Ip", scenario="crowdsecurity/ssh-bf")
    [event] = decisions(left, after=timedelta(minutes=15))
    assert event.summary == "ban of 203.0.113.7 for 4h by crowdsec: crowdsecurity/ssh-bf"
    assert event.occurred_at == CREATED_AT
    assert event.external_id == "7@2026-11-20T09:20:21Z/decision-1"
    assert event.entities == (ATTACKER,)
    assert event.fields["until"] == "2026-11-20T13:20:21+00:00"
    assert event.fields["active"] is True


def test_lifted_ban_ends_at_its_removal():
    [event] = decisions(ban("-30m0s", value="203.0.113.7"), after=timedelta(hours=2))
    assert (event.fields["lasts"], event.fields["active"]) == ("1h30m", False)
    assert event.fields["until"] == "2026-11-20T10:50:21+00:00"


def test_decision_concerns_covered_addresses():
    of_range = ban(scope="Range", value="203.0.113.0/24")
    source = {"scope": "AS", "value": "64500"}
    [event] = decisions(of_range, source=source, entity=NEIGHBOR)
    assert event.entities == (NEIGHBOR,)
    outside = Entity(EntityKind.IP, "198.51.100.1")
    assert decisions(of_range, source=source, entity=outside) == []
    assert decisions(ban(scope="AS", value="64500")) != []  # whose source it is


def test_decision_without_duration_is_an_event():
    [event] = decisions(ban("for ever", value="203.0.113.7"))
    assert event.summary == "ban of 203.0.113.7 by crowdsec"
    assert "until" not in event.fields


@given(
    changes=st.dictionaries(
        st.sampled_from([*sorted(alert()), "meta"]), JSON | st.lists(JSON, max_size=3), max_size=4
    )
)
def test_any_field_may_have_any_type(changes):
    inside = {**line(**FAILED), **{key: value for key, value in changes.items() if key == "meta"}}
    record = alert(**{"events": [inside], "decisions": [ban()], **changes})
    for entity in (ATTACKER, ROOT):
        with contextlib.suppress(ValueError):  # an alert may be passed over, and nothing else
            for event in (*find_lines(record, entity), *find_decisions(record, entity, CREATED_AT)):
                assert event.summary.strip()
                assert entity in event.entities


@given(length=st.timedeltas(min_value=-timedelta(days=9_000), max_value=timedelta(days=9_000)))
def test_durations_round_trip(length):
    assert abs(parse_duration(format_duration(length)) - length) <= timedelta(microseconds=2)


@pytest.mark.parametrize(
    ("text", "short"),
    [("3h59m59.8s", "4h"), ("90m", "1h30m"), ("1500ms", "2s"), ("500us", "0s"), ("1h5s", "1h5s")],
)
def test_durations_are_abbreviated(text, short):
    assert format_short(parse_duration(text)) == short


@pytest.mark.parametrize("text", ["", "-", "4", "4 h", "h", "4h-3m", f"{9**99}h"])
def test_invalid_durations_are_value_errors(text):
    with pytest.raises(ValueError, match=r"is not a duration|is out of range"):
        parse_duration(text)
