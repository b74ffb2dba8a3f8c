"""Workflow for n8n: what it verifies, and what it responds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook

ROOT = Path(__file__).parents[2]
WORKFLOW = json.loads((ROOT / "examples/n8n/workflow.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs/soar/receivers/n8n.md").read_text(encoding="utf-8")
NODES = {node["name"]: node for node in WORKFLOW["nodes"]}
SECRET = "whsec_" + "QUJDREVG" * 5
BODY = '{"event_id": "evt_1", "title": "Übung"}'
# What n8n gives to a node of code
HARNESS = """
const { code, headers, body, secret } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const node = { helpers: { getBinaryDataBuffer: async () => Buffer.from(body, 'utf8') } };
const $input = { first: () => ({ json: { headers } }) };
const $env = { TOCSIN_WEBHOOK_SECRET: secret };
const make = Object.getPrototypeOf(async function () {}).constructor;
new make('$input', '$env', 'require', code).call(node, $input, $env, require).then(
  (items) => console.log(JSON.stringify(items)),
  (error) => { console.error(error.message); process.exit(1); });
"""

node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


def run(body: str = BODY, *, signed: str = BODY, age: timedelta = timedelta(0), secret=SECRET):
    """Run the code of the node `Verify` for a request."""
    moment = datetime.now(UTC) - age
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": "v1a,x " + Webhook(SECRET).sign("evt_1", moment, signed),
    }
    given = {
        "code": NODES["Verify"]["parameters"]["jsCode"],
        "headers": headers,
        "body": body,
        "secret": secret,
    }
    return subprocess.run(
        ["node", "-e", HARNESS],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )


@node
def test_a_signed_event_is_passed_on():
    result = run()
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [{"json": json.loads(BODY)}]


@node
@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"body": BODY.replace("1", "2")}, "does not match"),
        ({"secret": "whsec_" + "QUJDREVH" * 5}, "does not match"),
        ({"secret": ""}, "TOCSIN_WEBHOOK_SECRET"),
        ({"age": timedelta(minutes=6)}, "webhook-timestamp"),
    ],
)
def test_anything_else_stops_the_workflow(request_, words):
    result = run(**request_)
    assert result.returncode == 1
    assert words in result.stderr


def test_the_response_is_the_proof_that_the_contract_requires_and_comes_last():
    assert NODES["Webhook"]["parameters"]["responseMode"] == "responseNode"
    assert NODES["Webhook"]["parameters"]["options"]["rawBody"] is True
    assert "event_id" in NODES["Respond"]["parameters"]["responseBody"]
    order, name = [], "Webhook"
    while name:
        order.append(name)
        [following] = WORKFLOW["connections"].get(name, {"main": [[{"node": ""}]]})["main"]
        name = following[0]["node"]
    assert order == ["Webhook", "Verify", "Your nodes", "Respond"]


def test_the_page_names_the_nodes_and_the_environment():
    assert "examples/n8n/workflow.json" in PAGE
    assert {"Verify", "Respond"} <= set(re.findall(r"`([A-Z][a-z]+)`", PAGE))
    code = NODES["Verify"]["parameters"]["jsCode"]
    assert set(re.findall(r"\$env\.(\w+)", code)) == {"TOCSIN_WEBHOOK_SECRET"}
    assert "TOCSIN_WEBHOOK_SECRET" in PAGE
    assert not re.search(r"whsec_\w", json.dumps(WORKFLOW))
