"""Networks, address ranges and names with wildcards."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, EntityPattern


def ip(value: str) -> Entity:
    return Entity(EntityKind.IP, value)


@pytest.mark.parametrize(
    ("text", "stored", "beginning"),
    [
        ("198.51.100.0/24", "198.51.100.0/24", "198.51.100."),
        ("198.51.100.77/24", "198.51.100.0/24", "198.51.100."),
        ("198.51.100.0/255.255.255.0", "198.51.100.0/24", "198.51.100."),
        ("10.32.0.0/12", "10.32.0.0/12", "10."),
        ("198.51.*", "198.51.0.0/16", "198.51."),
        ("198.51.100.*", "198.51.100.0/24", "198.51.100."),
        ("198.51.100.3-9", "198.51.100.3-198.51.100.9", "198.51.100."),
        ("198.51.100.0-198.51.100.255", "198.51.100.0/24", "198.51.100."),
        ("2001:DB8::/32", "2001:db8::/32", "2001:db8:"),
        ("2001:db8:0:1::/64", "2001:db8:0:1::/64", "2001:db8:"),
        ("::ffff:198.51.100.0/120", "198.51.100.0/24", "198.51.100."),
        ("web-**", "web-*", "web-"),
        ("*.Corp.example", "*.Corp.example", ""),
    ],
)
def test_a_pattern_is_read(text, stored, beginning):
    pattern = EntityPattern.parse(text)
    assert (pattern.text, pattern.beginning) == (stored, beginning)
    assert EntityPattern.parse(stored) == pattern


@pytest.mark.parametrize(
    "text", ["", "*", "a*", "web-1", "198.51.100.0/33", "198.51.100.9-3", "10.0.0.1-::1", "a b*"]
)
def test_what_is_no_pattern_is_refused(text):
    with pytest.raises(ValueError):
        EntityPattern.parse(text)


def test_names_match_in_any_case_and_only_in_their_kinds():
    pattern = EntityPattern.parse("WEB-*.corp", (EntityKind.HOST,))
    assert pattern.matches(Entity(EntityKind.HOST, "web-1.corp"))
    assert not pattern.matches(Entity(EntityKind.DOMAIN, "web-1.corp"))
    assert not pattern.matches(Entity(EntityKind.HOST, "web-1.corp.evil.example"))


def is_mapped(address) -> bool:
    """Return whether an address is written as an IPv4 address where it is read."""
    return getattr(address, "ipv4_mapped", None) is not None


addresses = st.ip_addresses().filter(lambda address: not is_mapped(address))


@given(addresses, st.integers(0, 128), addresses)
def test_a_network_matches_what_is_in_it_and_each_match_begins_alike(address, width, other):
    network = ip_network((address, min(width, address.max_prefixlen)), strict=False)
    pattern = EntityPattern.parse(str(network))
    for candidate in (address, network[-1], other):
        if is_mapped(candidate):
            continue
        assert pattern.matches(ip(str(candidate))) is (candidate in network)
        assert candidate not in network or str(candidate).startswith(pattern.beginning)
