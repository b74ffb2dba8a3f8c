from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.net.addresses import AddressPolicy, is_metadata, is_public, unwrap

FORBIDDEN_IPV4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
]
METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
]
PUBLIC_ONLY = AddressPolicy(public=True)
EVERYTHING = AddressPolicy(
    networks=(ip_network("0.0.0.0/0"), ip_network("::/0")), public=True, private=True
)


@pytest.mark.parametrize("network", FORBIDDEN_IPV4)
def test_an_ipv4_network_is_forbidden_up_to_its_edges(network):
    network = IPv4Network(network)
    assert not is_public(network[0])
    assert not is_public(network[-1])


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.169.0.0",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:200::1",
        "2001:db7:ffff::1",
        "2003::1",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
    ],
)
def test_public_addresses_are_public_up_to_the_edges_of_what_is_forbidden(address):
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:0:7f00:1",
        "::5efe:7f00:1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001:0:4136:e378:8000:63bf:3f57:fdf2",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_ipv6_addresses_that_only_look_harmless_are_not_public(address):
    assert not is_public(ip_address(address))


@given(st.ip_addresses())
def test_no_public_address_lies_outside_2000_3_or_inside_the_ipv4_table(address):
    if is_public(address):
        judged = unwrap(address)
        if isinstance(judged, IPv4Address):
            assert not any(judged in IPv4Network(network) for network in FORBIDDEN_IPV4)
        else:
            assert judged in IPv6Network("2000::/3")


@given(st.ip_addresses(v=4))
def test_an_embedded_ipv4_address_is_judged_as_itself(address):
    mapped = IPv6Address(f"::ffff:{address}")
    translated = IPv6Address(f"64:ff9b::{address}")
    assert is_public(mapped) == is_public(translated) == is_public(address)


@pytest.mark.parametrize("address", METADATA)
def test_metadata_services_are_never_reachable(address):
    assert is_metadata(ip_address(address))
    assert not EVERYTHING.allows(ip_address(address))


@pytest.mark.parametrize("address", [address for address in METADATA if "." in address])
@pytest.mark.parametrize("prefix", ["::", "::ffff:", "::ffff:0:", "64:ff9b::", "2606:64::"])
def test_no_translation_prefix_makes_metadata_services_reachable(prefix, address):
    assert not EVERYTHING.allows(ip_address(prefix + address))


def test_6to4_does_not_make_metadata_services_reachable():
    assert not EVERYTHING.allows(ip_address("2002:a9fe:a9fe::1"))


def test_an_allowed_network_is_reachable_and_its_neighbor_is_not():
    policy = AddressPolicy(networks=(ip_network("10.20.0.0/16"),), public=True)
    assert policy.allows(ip_address("10.20.255.255"))
    assert policy.allows(ip_address("::ffff:10.20.0.1"))
    assert not policy.allows(ip_address("10.21.0.0"))


def test_an_allowed_ipv6_network_does_not_allow_the_ipv4_addresses_mapped_into_it():
    policy = AddressPolicy(networks=(ip_network("::/0"),), public=True)
    assert not policy.allows(ip_address("::ffff:10.0.0.1"))


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111"])
def test_public_addresses_need_a_policy_that_allows_them(address):
    assert PUBLIC_ONLY.allows(ip_address(address))
    assert not AddressPolicy(public=False, private=True).allows(ip_address(address))


def test_private_addresses_are_allowed_to_who_may_reach_them():
    assert not PUBLIC_ONLY.allows(ip_address("192.168.0.1"))
    assert AddressPolicy(public=True, private=True).allows(ip_address("192.168.0.1"))


def test_an_address_with_a_scope_is_never_allowed():
    assert not EVERYTHING.allows(ip_address("fe80::1%eth0"))
