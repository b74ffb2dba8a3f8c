"""Samples of the webhooks page."""

import json
import re
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Event

import pytest
from typer.testing import CliRunner

import tocsin
import tocsin_templates
from tocsin import EventType
from tocsin.cli import webhooks
from tocsin.delivery.rendering import Renderer
from tocsin_plugins.webhook import Webhook
from tocsin_plugins.webhook.signing import Ed25519Signer, SharedSecret
from webhook_samples import (
    BODY,
    CURRENT,
    KEY,
    NO_SECRET,
    OLDER,
    OLDER_SECRET,
    PAGE,
    SECRET,
    headers,
    samples,
)


def test_every_sample_is_in_a_language_that_is_run_here():
    languages = set(re.findall(r"^```(\w+)$", PAGE, re.MULTILINE))
    assert languages == {"sh", "toml", "json", "python", "js", "go"}


*VERIFYING, REMEMBERING = samples("python")
RECEIVERS = zip(VERIFYING, [SECRET, SECRET, CURRENT[1].describe()], strict=True)


@pytest.fixture(params=RECEIVERS, ids=["stdlib", "standardwebhooks", "cryptography"])
def verify(request):
    """Return a sample's function, for the receiver of the current keys."""
    sample, key = request.param
    namespace = {}
    exec(sample, namespace)
    return lambda sent, body: namespace["verify"](key, sent, body)


@pytest.mark.parametrize("signers", [CURRENT, CURRENT + OLDER, OLDER + CURRENT])
def test_a_good_signature_is_accepted(verify, signers):
    assert verify(headers(*signers), BODY) == json.loads(BODY)


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (lambda: headers(*OLDER), BODY),
        (lambda: headers(*CURRENT), BODY + b" "),
        (lambda: headers(*CURRENT) | {"webhook-id": "01JD5N0T2R"}, BODY),
        (lambda: headers(*CURRENT) | {"webhook-timestamp": "1"}, BODY),
        (lambda: headers(*CURRENT) | {"webhook-signature": "v1, v1a,"}, BODY),
        (lambda: headers(*CURRENT, moment=time.time() - 900), BODY),
        (lambda: headers(*CURRENT, moment=time.time() + 900), BODY),
    ],
)
def test_what_is_not_to_be_trusted_is_refused(verify, sent, body):
    with pytest.raises(Exception, match=r"(?i)signature|old|clock|time"):
        verify(sent(), body)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_what_lacks_a_header_is_refused_like_what_has_a_wrong_one(verify, name):
    sent = headers(*CURRENT)
    del sent[name]
    with pytest.raises(Exception, match=r"the signature is wrong|Missing required headers"):
        verify(sent, BODY)


@pytest.mark.parametrize("sample", VERIFYING[:2], ids=["stdlib", "standardwebhooks"])
def test_without_a_secret_nobody_is_let_in(sample):
    namespace = {}
    exec(sample, namespace)
    with pytest.raises(Exception, match="secret"):
        namespace["verify"]("whsec_", headers(NO_SECRET), BODY)


@pytest.fixture
def memory(tmp_path):
    """Return the sample that remembers, and where it does."""
    namespace = {}
    exec(REMEMBERING, namespace)
    return namespace, tmp_path / "handled.db"


def test_an_event_is_handled_once_in_four_days(memory, monkeypatch):
    sample, path = memory
    handled = []
    for webhook_id in ("a", "b", "a"):
        sample["handle_once"](sample["open_memory"](path), webhook_id, lambda: handled.append(1))
    assert len(handled) == 2
    later = time.time() + 4 * 24 * 3600 + 1
    monkeypatch.setattr(time, "time", lambda: later)
    sample["handle_once"](sample["open_memory"](path), "a", lambda: handled.append(1))
    assert len(handled) == 3


def test_an_event_that_could_not_be_handled_is_handled_when_it_comes_again(memory):
    sample, path = memory
    database, handled = sample["open_memory"](path), []
    with pytest.raises(ZeroDivisionError):
        sample["handle_once"](database, "a", lambda: 1 / 0)
    sample["handle_once"](database, "a", lambda: handled.append(1))
    assert handled == [1]


def test_a_message_that_comes_while_its_like_is_handled_waits_for_the_end(memory):
    sample, path = memory
    has_begun, may_end, handled = Event(), Event(), []

    def slowly():
        has_begun.set()
        may_end.wait()
        handled.append("first")

    def receive(handle):
        sample["handle_once"](sample["open_memory"](path), "a", handle)

    with ThreadPoolExecutor() as threads:
        first = threads.submit(receive, slowly)
        has_begun.wait()
        second = threads.submit(receive, lambda: handled.append("second"))
        may_end.set()
        assert (first.result(), second.result()) == (None, None)
    assert handled == ["first"]


def test_the_commands_make_keys_that_are_accepted():
    commands = re.findall(r"tocsin webhooks ([a-z-]+) >", samples("sh")[0])
    secret, key = (CliRunner().invoke(webhooks.app, [command]).stdout for command in commands)
    assert SharedSecret.decode(secret.strip())
    assert Ed25519Signer.decode(key.strip())


@pytest.mark.parametrize("sample", samples("toml"))
def test_the_destinations_are_valid(sample, monkeypatch):
    monkeypatch.setenv("SOAR_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("SOAR_WEBHOOK_SECRET_OLD", OLDER_SECRET)
    monkeypatch.setenv("SOAR_SIGNING_KEY", KEY)
    [destination] = tomllib.loads(sample)["destinations"].values()
    Webhook.Settings(**destination)


def test_the_body_is_what_the_template_renders():
    [sample] = samples("json")
    shown = json.loads(sample)
    event = tocsin.Event(
        id="01JD5N0T2Q",
        event_type=EventType(shown["event_type"]),
        timestamp=datetime.fromisoformat(shown["timestamp"]),
        data=shown["data"],
        subject="incident:4711",
    )
    body = Renderer(list(tocsin_templates.tocsin_template_paths())).render("envelope", event)
    assert body.decode() == json.dumps(shown, separators=(",", ":"))


def test_the_retries_are_the_default_ones():
    seconds = [int(wait.total_seconds()) for wait in _default_schedule()]
    assert seconds == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert "5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h" in PAGE


def _default_schedule():
    return Webhook.Settings.model_fields["retry_schedule"].default
