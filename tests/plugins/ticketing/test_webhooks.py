"""Webhooks from trackers: authentication and named tickets.

The requests are those of the products' documentation, shortened to what Tocsin reads.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from pydantic import ValidationError
from standardwebhooks import Webhook

from tocsin import CredentialsRefused, PushRequest
from tocsin.testing import make_settings
from tocsin_plugins.ticketing import Ticketing

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
SECRET = "It's a Secret to Everybody"
SIGNING_TOKEN = f"whsec_{base64.b64encode(b'0123456789abcdef' * 2).decode()}"
SYS_ID = "9d385017c611228701d22104cc95c371"

GITHUB = {"action": "closed", "issue": {"number": 17}, "repository": {"full_name": "Acme/SOC"}}
GITLAB = {
    "object_kind": "issue",
    "event_type": "confidential_issue",
    "project": {"id": 1, "path_with_namespace": "acme/soc"},
    "object_attributes": {"id": 301, "iid": 17, "action": "close", "state": "closed"},
}
JIRA = {
    "timestamp": 1764331200000,
    "webhookEvent": "jira:issue_updated",
    "issue": {"id": "10002", "key": "SEC-17", "fields": {"summary": "Odd sign-in"}},
}
ZENDESK = {
    "type": "zen:event-type:ticket.status_changed",
    "detail": {"id": "17", "status": "SOLVED"},
    "event": {"current": "SOLVED", "previous": "OPEN"},
}
SERVICENOW = {"sys_id": SYS_ID}


def sign_hex(body: bytes, secret: str = SECRET) -> str:
    return f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}"


def sign_github(body, _at):
    return {"X-Hub-Signature-256": sign_hex(body), "X-GitHub-Event": "issues"}


def sign_gitlab(_body, _at):
    return {"X-Gitlab-Token": SECRET, "X-Gitlab-Event": "Confidential Issue Hook"}


def sign_gitlab_standard(body, at):
    signed = f"msg_1.{int(at.timestamp())}.".encode() + body
    digest = hmac.digest(b"0123456789abcdef" * 2, signed, hashlib.sha256)
    signature = f"v1,{base64.b64encode(digest).decode()}"
    times = {"webhook-timestamp": str(int(at.timestamp()))}
    return {"webhook-id": "msg_1", "webhook-signature": signature} | times


def sign_jira(body, _at):
    return {"X-Hub-Signature": sign_hex(body)}


def sign_zendesk(body, at):
    time = at.isoformat().replace("+00:00", "Z")
    digest = hmac.digest(SECRET.encode(), time.encode() + body, hashlib.sha256)
    name = "X-Zendesk-Webhook-Signature"
    return {name: base64.b64encode(digest).decode(), f"{name}-Timestamp": time}


def bear(_body, _at):
    return {"Authorization": f"Bearer {SECRET}"}


CASES = {
    "github": ("github", SECRET, sign_github, GITHUB, "17"),
    "gitlab": ("gitlab", SECRET, sign_gitlab, GITLAB, "17"),
    "gitlab signing token": ("gitlab", SIGNING_TOKEN, sign_gitlab_standard, GITLAB, "17"),
    "jira cloud": ("jira-cloud", SECRET, sign_jira, JIRA, "SEC-17"),
    "jira data center": ("jira-data-center", SECRET, sign_jira, JIRA, "SEC-17"),
    "jira automation": ("jira-cloud", SECRET, bear, JIRA, "SEC-17"),
    "zendesk": ("zendesk", SECRET, sign_zendesk, ZENDESK, "17"),
    "zendesk trigger": ("zendesk", SECRET, sign_zendesk, {"ticket": {"id": 17}}, "17"),
    "servicenow": ("servicenow", SECRET, bear, SERVICENOW, SYS_ID),
}
TIMED = ["gitlab signing token", "zendesk", "zendesk trigger"]
SIGNED = [name for name, case in CASES.items() if case[2] not in (bear, sign_gitlab)]
every_case = pytest.mark.parametrize("case", CASES)


def build_settings(tracker: str, secret: str | None = SECRET, **more):
    given = {"tracker": tracker, "url": "https://tracker.example.com", "secret": "a token"}
    given |= {"project": "acme/soc", "status_interval": "5m", "webhook_secret": secret}
    return make_settings(Ticketing, **given | more)


def parse(case: str, body: bytes, headers, at: datetime = NOW) -> list[str]:
    tracker, secret, *_ = CASES[case]
    request = PushRequest(headers=CIMultiDict(headers), body=body)
    return list(Ticketing.parse_webhook(build_settings(tracker, secret), request, at))


@every_case
def test_an_authentic_webhook_names_its_ticket(case):
    *_, sign, content, wanted = CASES[case]
    body = json.dumps(content).encode()
    assert parse(case, body, sign(body, NOW)) == [wanted]


@every_case
def test_a_wrong_or_missing_secret_is_refused(case):
    *_, sign, content, _ = CASES[case]
    body = json.dumps(content).encode()
    headers = sign(body, NOW)
    wrong = {name: f"{value[:-2]}x=" for name, value in headers.items()}
    for sent in ({}, wrong, dict.fromkeys(headers, ""), dict.fromkeys(headers, "\udcff")):
        with pytest.raises(CredentialsRefused):
            parse(case, body, sent)


@pytest.mark.parametrize("case", SIGNED)
def test_a_signature_is_that_of_one_body(case):
    *_, sign, content, _ = CASES[case]
    body = json.dumps(content).encode()
    with pytest.raises(CredentialsRefused):
        parse(case, body.replace(b"17", b"18") + b" ", sign(body, NOW))


@pytest.mark.parametrize("case", TIMED)
@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_signature_with_a_time_cannot_be_replayed_later(case, minutes):
    *_, sign, content, _ = CASES[case]
    body = json.dumps(content).encode()
    with pytest.raises(CredentialsRefused, match="not recent"):
        parse(case, body, sign(body, NOW), NOW + timedelta(minutes=minutes))


@pytest.mark.parametrize("time", ["", "soon", "2026-11-28T12:00:00", "0001-01-01T00:00:00+23:59"])
def test_a_time_that_is_none_is_refused(time):
    digest = hmac.digest(SECRET.encode(), time.encode() + b"{}", hashlib.sha256)
    name = "X-Zendesk-Webhook-Signature"
    with pytest.raises(CredentialsRefused):
        parse(
            "zendesk", b"{}", {name: base64.b64encode(digest).decode(), f"{name}-Timestamp": time}
        )


def test_signatures_are_those_of_the_documentation():
    github = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert parse("github", b"Hello, World!", {"X-Hub-Signature-256": f"sha256={github}"}) == []
    jira = "a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9"
    assert parse("jira cloud", b"Hello World!", {"X-Hub-Signature": f"sha256={jira}"}) == []


def test_standard_signatures_are_those_of_its_library():
    signature = Webhook(SIGNING_TOKEN).sign("msg_1", NOW, "{}")
    assert sign_gitlab_standard(b"{}", NOW)["webhook-signature"] == signature


def test_a_wrong_signature_of_jira_is_not_made_good_by_the_secret():
    headers = bear(b"{}", NOW) | {"X-Hub-Signature": sign_hex(b"[]")}
    with pytest.raises(CredentialsRefused):
        parse("jira cloud", b"{}", headers)


@pytest.mark.parametrize(
    ("case", "content"),
    [
        ("github", GITHUB | {"repository": {"full_name": "acme/other"}}),
        ("github", {"zen": "Keep it logically awesome.", "hook_id": 1}),
        ("github", GITHUB | {"issue": {"number": True}}),
        ("gitlab", GITLAB | {"project": {"path_with_namespace": "acme/other"}}),
        ("gitlab", GITLAB | {"object_kind": "merge_request"}),
        ("jira cloud", {"webhookEvent": "jira:version_released", "version": {"id": "1"}}),
        ("zendesk", {"type": "zen:event-type:user.created", "detail": {"id": "x"}}),
        ("servicenow", {"sys_id": None}),
    ],
)
def test_other_events_name_no_ticket(case, content):
    body = json.dumps(content).encode()
    assert parse(case, body, CASES[case][2](body, NOW)) == []


names = st.sampled_from(
    [
        *("issue", "number", "key", "repository", "full_name", "detail", "ticket", "id"),
        *("object_kind", "object_attributes", "iid", "project", "path_with_namespace", "sys_id"),
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
bodies = st.binary(max_size=50) | json_values.map(lambda value: json.dumps(value).encode())


@given(case=st.sampled_from(sorted(CASES)), body=bodies)
def test_an_authentic_body_of_any_form_names_texts(case, body):
    assert all(isinstance(each, str) for each in parse(case, body, CASES[case][2](body, NOW)))


@given(
    case=st.sampled_from(sorted(CASES)),
    body=bodies,
    value=st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
def test_no_other_header_is_authentic(case, body, value):
    headers = dict.fromkeys(CASES[case][2](body, NOW), value)
    with pytest.raises(CredentialsRefused):
        parse(case, body, headers)


@pytest.mark.parametrize(
    ("tracker", "settings", "reason"),
    [
        ("github", {"webhook_secret": "x" * 15}, "at least 16"),
        ("github", {"status_interval": None}, "also set status_interval"),
        ("roundup", {}, "does not accept webhooks from"),
    ],
)
def test_a_secret_that_protects_nothing_is_refused(tracker, settings, reason):
    with pytest.raises(ValidationError, match=reason):
        build_settings(tracker, **settings)


def test_the_secret_is_redacted():
    settings = build_settings("github")
    assert SECRET not in repr(settings)
    assert "webhook_secret" in Ticketing.Settings.secret_fields()
