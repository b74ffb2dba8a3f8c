"""What a mail destination can be told, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tocsin.fields import SettingsOrigin
from tocsin_plugins.email import Email
from tocsin_plugins.email.addresses import Mailbox

GOOD = {
    "plugin": "email",
    "host": "mail.example.com",
    "sender": "Tocsin <tocsin@example.com>",
    "to": ["soc@example.com"],
}
INSIDE = {"allow_networks": ["10.20.0.0/16"]}


def settings(**given):
    table = {name: it for name, it in {**GOOD, **given}.items() if it is not None}
    return Email.Settings.model_validate(table, context=SettingsOrigin(Path()).context())


@pytest.fixture
def password(monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", "secret words")
    return {"username": "tocsin", "password": {"env": "MAIL_PASSWORD"}}


@pytest.mark.parametrize(("tls", "port"), [("starttls", 587), ("implicit", 465), ("none", 25)])
def test_the_port_follows_from_the_encryption(server_of, tls, port):
    assert server_of(tls=tls, **INSIDE).port == port
    assert server_of(tls=tls, port=2525, **INSIDE).port == 2525


@pytest.fixture
def server_of():
    from tocsin.testing import make_tools

    return lambda **given: Email(settings(**given), make_tools())._server


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"host": None}, "Field required"),
        ({"host": ""}, "mail server"),
        ({"host": "mail example"}, "mail server"),
        ({"host": "https://mail.example.com"}, "mail server"),
        ({"host": "mail.example.com:587"}, "mail server"),
        ({"host": "-.-"}, "mail server"),
        ({"port": 0}, "greater than or equal to 1"),
        ({"port": 65_536}, "less than or equal to 65535"),
        ({"tls": "ssl"}, "'starttls', 'implicit' or 'none'"),
        ({"tls": "none"}, "allow_networks"),
        ({"username": "tocsin"}, "both username and password"),
        ({"sender": "tocsin"}, "use an address"),
        ({"to": []}, "at least 1"),
        ({"to": ["a@example.com", "b@example.com, c@example.com"]}, "use an address"),
        ({"to": ["a@example.com\r\nBcc: b@example.com"]}, "line breaks"),
        ({"to": [f"a{number}@example.com" for number in range(51)]}, "at most 50"),
        ({"cc": ["Team: a@example.com;"]}, "use an address"),
        ({"reply_to": "@example.com"}, "use an address"),
        ({"digest": "30s"}, "greater than or equal to"),
        ({"digest": "25h"}, "less than or equal to"),
        ({"proxy": "http://proxy.example.com:3128"}, "Extra inputs"),
        ({"url": "smtp://x"}, "Extra inputs"),
    ],
)
def test_what_is_wrong_is_told(given, words):
    with pytest.raises(ValidationError, match=words):
        settings(**given)


def test_a_password_is_a_reference_and_goes_nowhere_without_tls(password):
    given = settings(**password)
    assert given.password.get_secret_value() == "secret words"
    assert "secret words" not in repr(given)
    with pytest.raises(ValidationError, match="does not send passwords without TLS"):
        settings(tls="none", **password, **INSIDE)
    with pytest.raises(ValidationError, match="env"):
        settings(username="tocsin", password="secret words")


@pytest.mark.parametrize(
    ("host", "kept"),
    [("MAIL.example.com", "mail.example.com"), ("bücher.example", "xn--bcher-kva.example"),
     ("10.20.0.25", "10.20.0.25"), ("2001:db8::25", "2001:db8::25"), ("mail_1", "mail_1")],
)  # fmt: skip
def test_a_host_is_kept_as_it_is_looked_up(host, kept):
    assert settings(host=host).host == kept


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("soc@example.com", "", "soc@example.com"),
        ("SOC <soc@example.com>", "SOC", "soc@example.com"),
        ("J. Doe <j.doe@example.com>", "J. Doe", "j.doe@example.com"),
        ('"Doe, J." <j@example.com>', "Doe, J.", "j@example.com"),
        ("Grüne Woche <soc@bücher.example>", "Grüne Woche", "soc@xn--bcher-kva.example"),
        ("жив@пример.рф", "", "жив@xn--e1afmkfd.xn--p1ai"),
        ("a+b=c/d@example.com", "", "a+b=c/d@example.com"),
        ("root@localhost", "", "root@localhost"),
    ],
)
def test_a_mailbox_is_understood(text, name, address):
    mailbox = Mailbox.parse(text)
    assert (mailbox.name, mailbox.address) == (name, address)
    assert mailbox.needs_utf8 == (not address.isascii())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soc",
        "@example.com",
        "soc@",
        "a@b@example.com",
        "<soc@example.com",
        "soc@example.com>",
        ".a@example.com",
        "a.@example.com",
        "a..b@example.com",
        '"a b"@example.com',
        "a b@example.com",
        "soc@[192.0.2.1]",
        "soc@exa mple.com",
        "soc@-example.com",
        "soc@example..com",
        "a@example.com, b@example.com",
        "Team: a@example.com;",
        "a\u202eb@example.com",
        "a@example.com\n",
        "x" * 65 + "@example.com",
        "x@" + ".".join(["y" * 60] * 5),
    ],
)
def test_what_is_no_mailbox_is_refused(text):
    with pytest.raises(ValueError):
        Mailbox.parse(text)


@given(st.text())
def test_whatever_is_given_for_a_mailbox_it_is_one_or_none(text):
    try:
        mailbox = Mailbox.parse(text)
    except ValueError:
        return
    assert Mailbox.parse(mailbox.address).address == mailbox.address
    assert not set(mailbox.address) & set("\r\n <>")
