"""Settings of the push provider: a built-in format or a custom mapping."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from tocsin import Capability, CredentialsRefused, PushRequest
from tocsin.fields import SettingsOrigin
from tocsin.mapping.template import LIMITS
from tocsin.testing.conformance.push_harness import combine_batches
from tocsin_connectors.siem.push import Push

SIGN_IN = {"Authorization": "Bearer a-token-of-the-sender"}


async def test_custom_mapping_reads_any_format(make, tmp_path):
    mapping = tmp_path / "own.json.j2"
    mapping.write_text('{"incidents": [{"external_id": {{ body.case.no }} }]}')
    provider = await make(mapping_file=str(mapping))
    request = PushRequest(headers=SIGN_IN, body=b'{"case": {"no": 17}}')
    [found] = combine_batches([batch async for batch in provider.receive(request)]).incidents
    assert found.external_id == "17"


async def test_a_custom_mapping_reads_its_records_in_batches(make, tmp_path):
    mapping = tmp_path / "own.json.j2"
    mapping.write_text('{"incidents": [{"external_id": {{ body.cases|length ~ body.of }} }]}')
    provider = await make(mapping_file=str(mapping), records="cases")
    body = json.dumps({"of": "acme", "cases": [{}] * (LIMITS.batch_records + 1)}).encode()
    batches = [batch async for batch in provider.receive(PushRequest(headers=SIGN_IN, body=body))]
    names = [one.external_id for batch in batches for one in batch.incidents]
    assert names == [f"{LIMITS.batch_records}acme", "1acme"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "set either `format` or `mapping_file`"),
        ({"format": "graylog", "mapping_file": "own.json.j2"}, "set either"),
        ({"format": "splunk"}, "'alertmanager'"),
        ({"format": "incident", "records": "cases"}, "remove `records`"),
        ({"mapping_file": "none.json.j2"}, r"make .*/none.json.j2 readable \(No such file"),
        ({"mapping_file": "bad.json.j2"}, "line 2: "),
        ({"mapping_file": "latin.json.j2"}, "in UTF-8"),
    ],
)
async def test_settings_errors_are_reported_together(tmp_path, monkeypatch, settings, words):
    monkeypatch.setenv("PUSH_TOKEN", "a-token-of-the-sender")
    (tmp_path / "own.json.j2").write_text("{}")
    (tmp_path / "bad.json.j2").write_text("\n{{ body.")
    (tmp_path / "latin.json.j2").write_bytes(b"\xe9")
    written = {"plugin": "push", "token": {"env": "PUSH_TOKEN"}} | settings
    with pytest.raises(ValidationError, match=words):
        Push.Settings.model_validate(written, context=SettingsOrigin(tmp_path).context())


async def test_push_provider_is_not_polled(make):
    provider = await make(format="incident")
    assert provider.capabilities() == {Capability.PUSH}
    assert provider.streams() == ()
    with pytest.raises(CredentialsRefused):
        await anext(provider.receive(PushRequest(headers={}, body=b"{}")))


async def test_check_returns_the_push_url(make):
    health = await (await make(format="graylog")).check()
    assert health.problems == ()
    assert "https://tocsin.example/api/push/alerts" in health.detail
    assert "graylog" in health.detail
