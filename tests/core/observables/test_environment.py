"""Internal and well-known entities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tocsin.model import Entity, EntityKind
from tocsin.observables import Environment, EnvironmentSettings

OURS = Environment(
    EnvironmentSettings(
        internal_domains=("Contoso.com", "*.fabrikam.com"),
        well_known=("192.0.3.0/24", "updates.vendor.net", r"CONTOSO\backup", "ABCDEF"),
    )
)


def entity(text: str) -> Entity:
    kind, _, value = text.partition(" ")
    return Entity(EntityKind(kind), value)


@pytest.mark.parametrize(
    "text",
    [
        *("ip 10.1.2.3", "ip 172.31.0.1", "ip 192.168.0.1", "ip fd00::1", "ip 127.0.0.1"),
        *("ip 169.254.1.1", "ip fe80::1", "ip ::ffff:10.1.2.3"),
        *("domain contoso.com", "domain WWW.contoso.com.", "host web01", "host pc.corp.local"),
        *("url https://intranet.contoso.com/x", "url http://10.0.0.5:8080/", "url http://web01/"),
        *("email alice@contoso.com", "mailbox bob@mail.fabrikam.com", "user alice@contoso.com"),
    ],
)
def test_what_is_ours_is_internal(text):
    assert OURS.is_internal(entity(text))


@pytest.mark.parametrize(
    "text",
    [
        *("ip 203.0.113.7", "ip 172.32.0.1", "ip 2a00::1", "ip 10.0.0.0/8", "ip nonsense"),
        *(
            "domain evilcontoso.com",
            "domain contoso.com.evil.net",
            "url https://evil.com/contoso.com",
        ),
        *("url http://[", "url nothing", "email alice@evil.com", "user alice", r"user CONTOSO\bob"),
        *("file /etc/passwd", "file_hash contoso.com", "process contoso.com"),
    ],
)
def test_what_is_not_said_to_be_ours_is_not_internal(text):
    assert not OURS.is_internal(entity(text))


def test_configured_networks_stand_for_the_usual_ones():
    environment = Environment(EnvironmentSettings(internal_networks=("203.0.113.0/24",)))
    assert environment.is_internal(entity("ip 203.0.113.7"))
    assert not environment.is_internal(entity("ip 10.0.0.1"))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "ip 8.8.8.8",
            "ip 2606:4700:4700::1111",
            "ip 0.0.0.0",
        ),
        *("host localhost", "domain ctldl.windowsupdate.com", r"user NT AUTHORITY\SYSTEM"),
        *("url https://deb.debian.org/x", "email a@captive.apple.com"),
        *("user s-1-5-18", "file /dev/null", "file_hash d41d8cd98f00b204e9800998ecf8427e"),
        *("ip 192.0.3.9", "domain a.updates.vendor.net", "url http://updates.vendor.net/"),
        *(r"user Contoso\Backup", "process abcdef"),
    ],
)
def test_what_is_everywhere_is_well_known(text):
    assert OURS.is_well_known(entity(text))


@pytest.mark.parametrize(
    "text",
    ["ip 8.8.8.9", "domain evil.com", "user alice", "domain example.com", "ip 203.0.113.7"],
)
def test_anything_else_is_not_well_known(text):
    assert not OURS.is_well_known(entity(text))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"well_known": [""]}, "a value that is not empty"),
        ({"well_known": [" "]}, "a value that is not empty"),
        ({"internal_domains": [""]}, "use a domain such as"),
        ({"internal_domains": ["*."]}, "use a domain such as"),
        ({"internal_domains": ["two words"]}, "use a domain such as"),
        ({"internal_domains": ["https://corp.example"]}, "use a domain such as"),
        ({"internal_domains": ["10.0.0.0/8"]}, "use a domain such as"),
    ],
)
def test_what_would_be_overlooked_is_a_mistake(settings, words):
    with pytest.raises(ValidationError, match=words):
        EnvironmentSettings.model_validate(settings)


@pytest.mark.parametrize("domain", ["corp.example", "*.corp.example", ".corp", "bücher.example"])
def test_a_domain_may_be_written_as_one_is_used_to(domain):
    assert EnvironmentSettings(internal_domains=(domain,)).internal_domains == (domain,)


VALUES = st.text() | st.sampled_from(
    ["[", "http://[::1", "a@", "@", "::ffff:1.2.3.4%x", "xn--a", "."]
)


@given(st.sampled_from(EntityKind), VALUES, st.lists(st.text(), max_size=3))
def test_no_entity_and_no_setting_makes_it_raise(kind, value, settings):
    try:
        told = EnvironmentSettings(internal_domains=tuple(settings), well_known=tuple(settings))
    except ValidationError:
        told = EnvironmentSettings(well_known=("x", *filter(str.strip, settings)))
    environment = Environment(told)
    environment.is_internal(Entity(kind, value))
    environment.is_well_known(Entity(kind, value))
