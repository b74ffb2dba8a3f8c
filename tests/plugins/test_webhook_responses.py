"""Interpretation of receivers' responses, without a network."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

import tocsin_templates
from tocsin import AnswerCondition, AnswerRules, HttpResponse, Receipt, Refused, TryLater
from tocsin.contracts import load_contract
from tocsin_plugins.webhook.channel import read_receipt, retry_after

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RECEIVERS = [Path(folder) for folder in tocsin_templates.tocsin_template_paths()]
CONTRACTS = [path for folder in RECEIVERS for path in folder.glob("*/contract.toml")]
NOT_2XX = st.integers(100, 599).filter(lambda status: status // 100 != 2)


def answer(status, body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpResponse(status=status, headers=CIMultiDict(named), body=body, truncated=False)


def failure(*given, **headers):
    with pytest.raises((Refused, TryLater)) as caught:
        read_receipt(answer(*given, **headers), NOW)
    return caught.value


# --- statuses


@given(st.integers(200, 299), st.sampled_from(["disable", "abort-message", ""]))
def test_any_2xx_is_a_receipt_whatever_else_it_says(status, wish):
    taken = read_receipt(answer(status, b"taken", Webhook_Delivery=wish), NOW)
    assert (taken.status, taken.response, taken.remote_id) == (status, b"taken", None)


@given(NOT_2XX.filter(lambda status: status != 410))
def test_any_other_status_is_tried_again(status):
    error = failure(status, b"no")
    assert isinstance(error, TryLater)
    assert (error.status, error.response, error.after) == (status, b"no", None)
    assert error.throttled == (status in {429, 502, 504})


def test_gone_says_that_nothing_more_is_wanted():
    error = failure(410, b"bye", Retry_After="60")
    assert (type(error), error.unwanted) == (Refused, True)
    assert (error.status, error.response) == (410, b"bye")


@pytest.mark.parametrize("status", [429, 500, 503, 302, 404])
def test_every_failure_may_say_when_to_come_again(status):
    assert failure(status, Retry_After="120").after == timedelta(minutes=2)


# --- webhook-delivery


@pytest.mark.parametrize("value", ["disable", "Disable", " DISABLE "])
@given(status=NOT_2XX)
def test_a_receiver_may_end_all_deliveries(value, status):
    error = failure(status, b"stop", webhook_delivery=value)
    assert (type(error), error.unwanted) == (Refused, True)
    assert (error.status, error.response) == (status, b"stop")


@pytest.mark.parametrize("value", ["abort-message", "Abort-Message"])
@given(status=NOT_2XX.filter(lambda status: status != 410))
def test_a_receiver_may_end_the_retries_of_one_event(value, status):
    error = failure(status, b"never", WEBHOOK_DELIVERY=value)
    assert (type(error), error.unwanted) == (Refused, False)
    assert (error.status, error.response) == (status, b"never")


def test_gone_ends_all_deliveries_even_if_only_one_event_is_named():
    assert failure(410, webhook_delivery="abort-message").unwanted


@given(st.text().filter(lambda text: text.strip().lower() not in {"disable", "abort-message"}))
def test_an_unknown_wish_is_ignored(value):
    assert isinstance(failure(500, webhook_delivery=value), TryLater)


# --- Retry-After


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("1", timedelta(seconds=1)),
        (" 120 ", timedelta(minutes=2)),
        ("1.5", timedelta(seconds=1.5)),
        ("86400", timedelta(hours=24)),
        ("86401", timedelta(hours=24)),
        ("9" * 30, timedelta(hours=24)),
        ("9" * 5000, timedelta(hours=24)),
        ("0" * 5000 + "7", timedelta(seconds=7)),
        (format_datetime(NOW + timedelta(minutes=5), usegmt=True), timedelta(minutes=5)),
        ("Saturday, 21-Nov-26 12:05:00 GMT", timedelta(minutes=5)),
        ("Sat Nov 21 12:05:00 2026", timedelta(minutes=5)),
        (format_datetime(NOW + timedelta(days=30), usegmt=True), timedelta(hours=24)),
        (format_datetime(NOW - timedelta(seconds=1), usegmt=True), None),
        ("0", None),
        ("0.0", None),
        ("-5", None),
        ("1.", None),
        ("1e3", None),
        ("+5", None),
        ("٣", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_otherwise_nothing(value, delay):
    assert retry_after({"Retry-After": value}, NOW) == delay


def test_no_retry_after_is_nothing():
    assert retry_after({}, NOW) is None


@given(st.text())
def test_no_retry_after_does_harm(value):
    delay = retry_after({"Retry-After": value}, NOW)
    assert delay is None or timedelta(0) < delay <= timedelta(hours=24)


RULES = AnswerRules(
    success=(AnswerCondition(pointer="/success", equals=True),),
    remote_id="/id",
    known=AnswerCondition(pointer="/existing_container_id"),
    permanent=(422,),
)


def by_contract(status: int, body: bytes) -> Receipt:
    return read_receipt(answer(status, body), NOW, RULES)


def test_a_success_says_what_the_contract_wants_and_what_was_made():
    assert by_contract(200, b'{"success": true, "id": 42}').remote_id == "42"


@pytest.mark.parametrize("body", [b'{"success": false}', b'{"success": 1}', b"ok", b"", b"[1]"])
def test_a_2xx_that_does_not_say_so_is_tried_again(body):
    with pytest.raises(TryLater, match="/success does not report success"):
        by_contract(200, body)


PROOF = AnswerRules(accepted=(202,), event_id="/event_id")


@pytest.mark.parametrize(
    ("status", "body"),
    [(202, b""), (200, b'{"event_id": "evt_1"}'), (201, b'{"event_id": "evt_1"}')],
)
def test_a_receiver_that_hides_failures_gives_proof_of_receipt(status, body):
    assert read_receipt(answer(status, body), NOW, PROOF, "evt_1").status == status


@pytest.mark.parametrize("body", [b"", b"{}", b'{"event_id": "evt_2"}', b"<html>Sign in</html>"])
def test_a_2xx_without_proof_is_tried_again(body):
    with pytest.raises(TryLater, match="202 or the event ID at /event_id"):
        read_receipt(answer(200, body), NOW, PROOF, "evt_1")


@pytest.mark.parametrize(
    ("rules", "body", "words"),
    [
        (AnswerRules(remote_id="/id"), b"<html>Sign in</html>", "the ID of the created object"),
        (AnswerRules(text="ok"), b"<html>Sign in</html>", "the body is not 'ok'"),
    ],
)
def test_the_page_of_a_proxy_is_no_receipt(rules, body, words):
    with pytest.raises(TryLater, match=words):
        read_receipt(answer(200, body), NOW, rules)


PAGE = b"<html>Sign in</html>"
OWN = b'{"event_id": "evt_1"}'


def by_shipped(receiver: str, status: int, body: bytes) -> Receipt:
    contract = load_contract(RECEIVERS, receiver)
    assert contract is not None
    return read_receipt(answer(status, body), NOW, contract.answer, "evt_1")


@pytest.mark.parametrize(
    ("receiver", "status", "body"),
    [
        ("tines", 201, b"Ok"),
        ("tines", 200, OWN),
        ("torq", 200, OWN),
        ("secops-soar", 200, b"{}\n"),
        *(("cloudevents", status, b"") for status in (200, 201, 202, 204)),
    ],
)
def test_what_a_vendor_documents_as_its_success_is_a_receipt(receiver, status, body):
    assert by_shipped(receiver, status, body).status == status


@pytest.mark.parametrize(
    ("receiver", "status", "body"),
    [
        ("tines", 200, PAGE),
        ("tines", 200, b'{"event_id": "evt_2"}'),
        ("torq", 200, PAGE),
        ("torq", 202, b""),
        ("secops-soar", 200, PAGE),
        ("secops-soar", 200, b""),
        ("secops-soar", 200, b'{"error": {"code": 403}}'),
        ("cloudevents", 203, PAGE),
    ],
)
def test_any_other_2xx_of_a_vendor_is_tried_again(receiver, status, body):
    with pytest.raises(TryLater, match=f"returned {status}"):
        by_shipped(receiver, status, body)


@pytest.mark.parametrize("receiver", sorted(path.parent.name for path in CONTRACTS))
def test_every_receiver_of_a_webhook_proves_receipt_or_says_why_not(receiver):
    contract = load_contract(RECEIVERS, receiver)
    assert contract is not None
    rules = contract.answer
    proof = rules.success or rules.accepted or rules.event_id or rules.text or rules.remote_id
    assert contract.channel or proof or rules.no_proof


def test_what_is_known_already_is_a_success_whatever_the_status():
    taken = by_contract(400, b'{"failed": true, "existing_container_id": 7}')
    assert (taken.status, taken.remote_id) == (400, "7")


def test_what_the_contract_calls_permanent_is_not_tried_again():
    with pytest.raises(Refused, match="would reject a retry") as refused:
        by_contract(422, b'{"message": "no"}')
    assert not refused.value.unwanted
