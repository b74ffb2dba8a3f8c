"""Every fenced sample of the page does what the page says."""

import base64
import json
import re
import subprocess
import sys
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tocsin_templates
from tocsin import Event, EventType
from tocsin.delivery.rendering import Renderer
from tocsin_plugins.webhook import Webhook
from tocsin_plugins.webhook.signing import decode_secret, signature_headers

PAGE = (Path(__file__).parents[2] / "docs/soar/webhooks.md").read_text(encoding="utf-8")
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
OLDER = "whsec_" + base64.b64encode(b"o" * 32).decode()
BODY = '{"event_type":"incident-alert","data":{"title":"é"}}'.encode()


def samples(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def headers(*secrets, moment=None):
    keys = [decode_secret(secret) for secret in secrets]
    moment = moment or time.time()
    return signature_headers(keys, "01JD5N0T2Q", datetime.fromtimestamp(moment, UTC), BODY)


def test_every_sample_is_in_a_language_that_is_run_here():
    languages = set(re.findall(r"^```(\w+)$", PAGE, re.MULTILINE))
    assert languages == {"sh", "toml", "json", "python"}


@pytest.fixture(params=samples("python"), ids=["stdlib", "standardwebhooks"])
def verify(request):
    namespace = {}
    exec(request.param, namespace)
    return namespace["verify"]


@pytest.mark.parametrize("secrets", [[SECRET], [SECRET, OLDER], [OLDER, SECRET]])
def test_a_good_signature_is_accepted(verify, secrets):
    assert verify(SECRET, headers(*secrets), BODY) == json.loads(BODY)


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (headers(OLDER), BODY),
        (headers(SECRET), BODY + b" "),
        (headers(SECRET) | {"webhook-id": "01JD5N0T2R"}, BODY),
        (headers(SECRET) | {"webhook-timestamp": "1"}, BODY),
        (headers(SECRET) | {"webhook-signature": "v1,"}, BODY),
        (headers(SECRET, moment=time.time() - 900), BODY),
        (headers(SECRET, moment=time.time() + 900), BODY),
    ],
)
def test_what_is_not_to_be_trusted_is_refused(verify, sent, body):
    with pytest.raises(Exception, match=r"(?i)signature|old|clock|time"):
        verify(SECRET, sent, body)


def test_the_command_makes_a_secret_that_is_accepted():
    command, *_ = samples("sh")
    program = re.fullmatch(r"python3 -c '(.*)'\n", command)[1]
    secret = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert len(decode_secret(secret.stdout.strip())) == 32


@pytest.mark.parametrize("sample", samples("toml"))
def test_the_destinations_are_valid(sample, monkeypatch):
    monkeypatch.setenv("SOAR_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("SOAR_WEBHOOK_SECRET_OLD", OLDER)
    [destination] = tomllib.loads(sample)["destinations"].values()
    Webhook.Settings(**destination)


def test_the_body_is_what_the_template_renders():
    [sample] = samples("json")
    shown = json.loads(sample)
    event = Event(
        id="01JD5N0T2Q",
        event_type=EventType(shown["event_type"]),
        timestamp=datetime.fromisoformat(shown["timestamp"]),
        data=shown["data"],
        subject="incident:4711",
    )
    body = Renderer(list(tocsin_templates.tocsin_template_paths())).render("envelope", event)
    assert body.decode() == json.dumps(shown, separators=(",", ":"))


def test_the_table_of_settings_is_complete():
    table = PAGE.split("| Setting | Meaning | Default |")[1].split("\n\n")[0]
    assert {"plugin", *re.findall(r"^\| `(\w+)`", table, re.MULTILINE)} >= {
        *Webhook.Settings.model_fields
    } - {"concurrency"}


def test_the_retries_are_the_default_ones():
    seconds = [int(wait.total_seconds()) for wait in _default_schedule()]
    assert seconds == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert "5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h" in PAGE


def _default_schedule():
    return Webhook.Settings.model_fields["retry_schedule"].default
