"""Grammar and policy of URLs, strict so that the checked URL is the one connected to."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from yarl import URL

from tocsin.net.addresses import Address, AddressPolicy, Network

_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
# "Ends in a number" of the WHATWG URL Standard: some resolvers read such names as addresses.
_ENDS_IN_A_NUMBER = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)\.?")
_LONGEST_NAME = 254  # RFC 1035 section 2.3.4, as text with the final dot


def parse_url(text: str) -> URL:
    """Return the URL in `text`; ValueError names the rule that it breaks.

    The rules are those of RFC 3986 for an absolute http or https URL, without parts that mislead
    readers or parsers: user information, fragments, escapes inside the host.
    """
    if _UNSAFE.search(text):
        raise ValueError("the URL contains a space, a control character or a backslash")
    if "#" in text:
        raise ValueError("the URL contains a fragment (#...), which would never be sent")
    url, authority = _split(text)
    if url.scheme not in ("http", "https"):
        raise ValueError("the URL does not start with https:// or http://")
    if "@" in authority:  # yarl drops a user name that is empty
        raise ValueError("the URL contains a user name or password before its host")
    if not url.raw_host:
        raise ValueError("the URL has no host")
    if url.port == 0:
        raise ValueError("the URL has port 0")
    literal_address(url.raw_host)
    return url


def parse_proxy(text: str) -> URL:
    """Return the URL of an HTTP proxy, which may hold a user name and password.

    ValueError describes the problem without quoting the URL.
    """
    url, _ = _split(text)
    misleading = _UNSAFE.search(text) or "#" in text
    if misleading or url.scheme != "http" or not url.port or url.raw_path_qs != "/":
        raise ValueError("a proxy URL must have the form http://host:port, without a path")
    literal_address(url.raw_host or "")
    return url


def _split(text: str) -> tuple[URL, str]:
    """Return the URL, and its authority as written."""
    try:
        url = URL(text)
        authority = urlsplit(text).netloc
    except ValueError:  # not shown: it may quote a password
        raise ValueError("the URL has no readable host, or the port is invalid") from None
    try:
        _ = url.host  # decoded when it is first read
    except ValueError:
        raise ValueError("the host in the URL has an invalid Punycode label (xn--...)") from None
    return url, authority


def literal_address(host: str) -> Address | None:
    """Return the address in `host`, or None for a name; ValueError for neither."""
    try:
        if ":" in host and "%" not in host:  # a zone (RFC 6874) must not be sent
            return IPv6Address(host)
        if _ENDS_IN_A_NUMBER.fullmatch(host):
            return IPv4Address(host)
    except ValueError:
        raise ValueError(
            "the host in the URL is not a valid IP address; write it like 192.0.2.1"
        ) from None
    if len(host) > _LONGEST_NAME or not _NAME.fullmatch(host):
        raise ValueError("the host in the URL is neither a valid name nor an IP address")
    return None


def build_policy(
    url: URL, allow_networks: Sequence[Network], allow_hosts: Collection[str] = ()
) -> AddressPolicy:
    """Return the policy for requests of `url`.

    Without TLS, only allowed networks and private addresses of allowed hosts are permitted.
    """
    return AddressPolicy(
        networks=tuple(allow_networks),
        public=url.scheme == "https",
        private=url.raw_host in allow_hosts,
    )


def check_url(url: URL, policy: AddressPolicy) -> None:
    """Raise ValueError, with a description, if `url` can never be requested under `policy`.

    Nothing is sent: a literal address is checked here, the addresses of a name when it is used.
    """
    address = literal_address(url.raw_host or "")
    if address is not None and not policy.allows(address):
        raise ValueError(describe_refusal(url, policy))
    if not policy.allows_any:
        raise ValueError("plain http:// is allowed only for networks in allow_networks")


def describe_refusal(url: URL, policy: AddressPolicy) -> str:
    """Return why `url` is not requested; the same text for any address, to reveal nothing."""
    reason = f"the address of {url.host} is not allowed"
    if policy.private:  # these requests have no allow_networks
        plain = "; plain http:// is allowed only for private addresses, so use https://"
        return reason + (plain if url.scheme == "http" else "")
    reason = f"{reason}; add its network to allow_networks"
    return (
        f"{reason} (plain http:// is allowed only for these networks)"
        if url.scheme == "http"
        else reason
    )
