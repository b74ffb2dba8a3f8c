"""Settings of a webhook destination, and errors in them."""

import base64
from pathlib import Path

import pytest
from pydantic import ValidationError

from tocsin.fields import SettingsOrigin
from tocsin.validation import explain_errors
from tocsin_plugins.webhook import Webhook, tocsin_channels

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
OLDER = "whsec_" + base64.b64encode(b"o" * 32).decode()
KEY = "whsk_" + base64.b64encode(b"k" * 32).decode()
HTTPS = "https://soar.example.com/hooks/tocsin"


def settings(**given):
    given = {"plugin": "webhook", "url": HTTPS, "secret": SECRET, **given}
    return Webhook.Settings.model_validate(given, context=SettingsOrigin().context())


def wrong(**given):
    """Return the error message for wrong settings."""
    with pytest.raises(ValidationError) as caught:
        settings(**given)
    return str(caught.value)


def test_the_plugin_offers_the_channel():
    assert tocsin_channels() is Webhook


@pytest.mark.parametrize(
    "url",
    [
        "soar.example.com/hook",
        "/hook",
        "ftp://soar.example.com/",
        "https:///hook",
        "https://soar.example.com:0/",
        "https://soar.example.com:99999/",
        "https://user:password@soar.example.com/",
        "https://@soar.example.com/",
        "https://soar.example.com/#top",
        "https://soar.example.com/#",
        "https://soar.example.com/a b",
        "https://soar.example.com\\@evil.example/",
        "https://soar.example.com/\t",
        "https://[::1",
    ],
)
def test_a_url_that_is_none_or_misleads_is_refused(url):
    assert "url" in wrong(url=url)


@pytest.mark.parametrize(("text", "words"), [("", "CHAT_URL is empty"), ("/x", "an absolute URL")])
def test_what_is_wrong_with_the_reference_of_a_url_is_told_of_the_url(monkeypatch, text, words):
    monkeypatch.setenv("CHAT_URL", text)
    given = {"plugin": "webhook", "url": {"env": "CHAT_URL"}, "secret": SECRET}
    with pytest.raises(ValidationError) as caught:
        Webhook.Settings.model_validate(given, context=SettingsOrigin(Path()).context())
    of_url = [
        error for error in explain_errors(caught.value, Webhook.Settings) if error.path == ("url",)
    ]
    assert [words in problem.expected for problem in of_url] == [True]


def test_plain_http_needs_an_allowed_network():
    assert "https://" in wrong(url="http://soar.internal/hook")
    settings(url="http://soar.internal/hook", allow_networks=["10.0.0.0/8"])


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "hunter2",
        "whsec_not base64 at all, not at all!",
        "whsec_" + base64.b64encode(b"s" * 23).decode(),
        "whsec_" + base64.b64encode(b"s" * 65).decode(),
        "WHSEC_" + base64.b64encode(b"s" * 32).decode(),
        KEY,
        "whsec_" + base64.urlsafe_b64encode(b"\xff" * 32).decode(),
        "é" * 40,
    ],
)
@pytest.mark.parametrize("name", ["secret", "previous_secret"])
def test_a_wrong_secret_is_refused_saying_what_is_right_and_not_what_it_was(name, secret):
    text = wrong(**{name: secret})
    assert "whsec_ followed by the base64 of 24 to 64 random bytes" in text
    assert secret.removeprefix("whsec_") == "" or secret.removeprefix("whsec_") not in text


@pytest.mark.parametrize(
    "key",
    [
        "",
        "whsk_",
        "hunter2",
        SECRET,
        KEY.replace("whsk_", "whpk_"),
        "whsk_" + base64.b64encode(b"s" * 31).decode(),
        "whsk_" + base64.b64encode(b"s" * 63).decode(),
        "whsk_" + base64.b64encode(b"s" * 64).decode(),
    ],
)
@pytest.mark.parametrize("name", ["signing_key", "previous_signing_key"])
def test_a_wrong_signing_key_is_refused_in_the_same_way(name, key):
    text = wrong(**{name: key})
    assert name in text
    assert "whsk_ followed by the base64 of an ed25519 seed" in text
    assert key.removeprefix("whsk_") == "" or key.removeprefix("whsk_") not in text


def test_something_has_to_sign():
    assert "set secret, signing_key or both" in wrong(secret=None)
    assert "set secret" in wrong(secret=None, previous_secret=OLDER)


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_the_attributes_of_cloudevents_are_ours(mode):
    assert "CE-Source" in wrong(headers={"CE-Source": "x"}, cloudevents=mode)
    settings(headers={"CE-Source": "x"})


def test_an_unknown_content_mode_names_those_that_there_are():
    assert "'binary' or 'structured'" in wrong(cloudevents="batched")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Name", "a\r\nX-Evil: 1"),
        ("X-Name", "a\nb"),
        ("X-Name", "a\x00"),
        ("X-Name", "a\tb"),
        ("X-Name", "é"),
        ("X Name", "a"),
        ("X-Name:", "a"),
        ("", "a"),
        ("X-Näme", "a"),
        ("Content-Type", "text/plain"),
        ("content-length", "1"),
        ("Host", "other.example"),
        ("Transfer-Encoding", "chunked"),
        ("Webhook-Signature", "v1,forged"),
        ("webhook-anything", "a"),
    ],
)
def test_a_header_that_cannot_be_sent_or_is_ours_is_refused(name, value):
    assert "headers" in wrong(headers={name: value})
