"""Every fenced sample of the page does what the page says."""

import base64
import json
import re
import shutil
import subprocess
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tocsin_templates
from tocsin import Event, EventType
from tocsin.cli import webhooks
from tocsin.delivery.rendering import Renderer
from tocsin_plugins.webhook import Webhook
from tocsin_plugins.webhook.signing import SharedSecret, SigningKey, signature_headers

PAGE = (Path(__file__).parents[2] / "docs/soar/webhooks.md").read_text(encoding="utf-8")
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
OLDER_SECRET = "whsec_" + base64.b64encode(b"o" * 32).decode()
KEY = "whsk_" + base64.b64encode(b"k" * 32).decode()
OLDER_KEY = "whsk_" + base64.b64encode(b"o" * 32).decode()
CURRENT = (SharedSecret.decode(SECRET), SigningKey.decode(KEY))
OLDER = (SharedSecret.decode(OLDER_SECRET), SigningKey.decode(OLDER_KEY))
BODY = '{"event_type":"incident-alert","data":{"title":"é"}}'.encode()


def samples(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def headers(*signers, moment=None):
    moment = moment or time.time()
    return signature_headers(signers, "01JD5N0T2Q", datetime.fromtimestamp(moment, UTC), BODY)


def test_every_sample_is_in_a_language_that_is_run_here():
    languages = set(re.findall(r"^```(\w+)$", PAGE, re.MULTILINE))
    assert languages == {"sh", "toml", "json", "python", "js"}


RECEIVERS = zip(samples("python"), [SECRET, SECRET, CURRENT[1].describe()], strict=True)


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
        (headers(*OLDER), BODY),
        (headers(*CURRENT), BODY + b" "),
        (headers(*CURRENT) | {"webhook-id": "01JD5N0T2R"}, BODY),
        (headers(*CURRENT) | {"webhook-timestamp": "1"}, BODY),
        (headers(*CURRENT) | {"webhook-signature": "v1, v1a,"}, BODY),
        (headers(*CURRENT, moment=time.time() - 900), BODY),
        (headers(*CURRENT, moment=time.time() + 900), BODY),
    ],
)
def test_what_is_not_to_be_trusted_is_refused(verify, sent, body):
    with pytest.raises(Exception, match=r"(?i)signature|old|clock|time"):
        verify(sent, body)


@pytest.fixture
def verify_by_node(tmp_path):
    """Return the JavaScript sample, run by Node.js for the receiver of the current secret."""
    if (node := shutil.which("node")) is None:
        pytest.skip("there is no Node.js here")
    [sample] = samples("js")
    (tmp_path / "verify.mjs").write_text(sample, encoding="utf-8")
    (tmp_path / "run.mjs").write_text(
        'import { verify } from "./verify.mjs";\n'
        "const [secret, headers, body] = JSON.parse(process.argv[2]);\n"
        "console.log(JSON.stringify(verify(secret, headers, Buffer.from(body))));\n",
        encoding="utf-8",
    )

    def verify(sent, body):
        given = json.dumps([SECRET, sent, body.decode()])
        command = [node, str(tmp_path / "run.mjs"), given]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return verify


def test_javascript_accepts_a_good_signature(verify_by_node):
    answer = verify_by_node(headers(*OLDER, *CURRENT), BODY)
    assert json.loads(answer.stdout) == json.loads(BODY), answer.stderr


@pytest.mark.parametrize(
    ("sent", "body", "words"),
    [
        (headers(*OLDER), BODY, "the signature is wrong"),
        (headers(*CURRENT), BODY + b" ", "the signature is wrong"),
        (headers(*CURRENT) | {"webhook-timestamp": "soon"}, BODY, "too old"),
        (headers(*CURRENT, moment=time.time() - 900), BODY, "too old"),
    ],
)
def test_javascript_refuses_what_is_not_to_be_trusted(verify_by_node, sent, body, words):
    answer = verify_by_node(sent, body)
    assert (answer.returncode, words in answer.stderr) == (1, True)


def test_the_commands_make_keys_that_are_accepted():
    commands = re.findall(r"tocsin webhooks ([a-z-]+) >", samples("sh")[0])
    secret, key = (CliRunner().invoke(webhooks.app, [command]).stdout for command in commands)
    assert SharedSecret.decode(secret.strip())
    assert SigningKey.decode(key.strip())


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
    names = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    documented = {name for cell in names for name in re.findall(r"`(\w+)`", cell)}
    assert documented | {"plugin"} == set(Webhook.Settings.model_fields)


def test_the_retries_are_the_default_ones():
    seconds = [int(wait.total_seconds()) for wait in _default_schedule()]
    assert seconds == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert "5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h" in PAGE


def _default_schedule():
    return Webhook.Settings.model_fields["retry_schedule"].default
