"""Environment of the organization: internal and well-known values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from tocsin.fields import Network
from tocsin.model import Entity, EntityKind
from tocsin.observables import well_known
from tocsin.observables.suffixes import ascii_name, is_local

AnyNetwork = IPv4Network | IPv6Network

_DOMAIN = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")  # in ASCII
_OURS: tuple[AnyNetwork, ...] = tuple(
    map(
        ip_network,
        (
            *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),  # RFC 1918, RFC 4193
            *("127.0.0.0/8", "::1/128", "169.254.0.0/16", "fe80::/10"),  # this host, this link
        ),
    )
)


def _filled(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("value", "use a value that is not empty")
    return text.strip()


def _domain(text: str) -> str:
    name = text.strip().lstrip("*.")
    if not _DOMAIN.fullmatch(ascii_name(name) or ""):
        raise PydanticCustomError("domain", "use a domain such as 'corp.example'")
    return text


class EnvironmentSettings(BaseModel):
    """[environment]: values that belong to the organization, and well-known values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    internal_networks: tuple[Network, ...] = Field(
        default=_OURS,
        description="Internal networks (CIDR). Default: private, loopback and link-local networks.",
    )
    internal_domains: tuple[Annotated[str, AfterValidator(_domain)], ...] = Field(
        default=(), description="Internal domains, with all their subdomains."
    )
    well_known: tuple[Annotated[str, AfterValidator(_filled)], ...] = Field(
        default=(),
        description="Additional well-known values to ignore: networks, domains with all their"
        " subdomains, or any other values.",
    )


class Environment:
    """The definition of internal and well-known entities."""

    def __init__(self, settings: EnvironmentSettings | None = None) -> None:
        self._use(settings or EnvironmentSettings())

    def _use(self, settings: EnvironmentSettings) -> None:
        self.settings = settings
        domains = (ascii_name(each.strip().lstrip("*.")) for each in settings.internal_domains)
        self._internal_domains = frozenset(filter(None, domains))
        networks = map(_network, settings.well_known)
        self._well_known_networks = tuple(each for each in networks if each is not None)
        self._well_known_values = frozenset(each.strip().lower() for each in settings.well_known)

    @property
    def names_networks(self) -> bool:
        """Whether internal networks are configured; if not, private networks count as internal."""
        return "internal_networks" in self.settings.model_fields_set

    def is_internal(self, entity: Entity) -> bool:
        """Return whether the entity belongs to the organization, based on its value.

        For a URL, the result depends on the URL's host. For an email address, mailbox or user, it
        depends on the domain after the `@`. IP addresses, hosts and domains are checked as they
        are. Other entities are never internal. An address is internal if it is in an internal
        network. A name is internal if it is an internal domain or below one, does not contain a
        dot, or ends in a suffix for private networks, such as `.local` or `.internal`.
        """
        place = _find_host(entity)
        if place is None:
            return False
        address = _address(place)
        if address is not None:
            return _is_in(address, self.settings.internal_networks)
        name = None if entity.kind is EntityKind.IP else ascii_name(place)
        return name is not None and self._is_internal_name(name)

    def _is_internal_name(self, name: str) -> bool:
        return "." not in name or is_local(name) or _is_below(name, self._internal_domains)

    def is_well_known(self, entity: Entity) -> bool:
        """Return whether the entity is common and insignificant, such as a public resolver."""
        value = entity.value.lower()
        if value in well_known.VALUES or value in self._well_known_values:
            return True
        place = _find_host(entity)
        if place is None:
            return False
        address = _address(place)
        if address is not None:
            return _is_in(address, (*well_known.NETWORKS, *self._well_known_networks))
        name = ascii_name(place)
        return name is not None and (
            _is_below(name, well_known.DOMAINS) or _is_below(name, self._well_known_values)
        )


def replace_environment(environment: Environment, settings: EnvironmentSettings) -> None:
    """Use other settings from now on, for everyone who has this environment."""
    environment._use(settings)  # noqa: SLF001 - plugins have the class, and must not replace them


def _find_host(entity: Entity) -> str | None:
    """Return the address or host name in an entity; None if it has none."""
    match entity.kind:
        case EntityKind.IP | EntityKind.DOMAIN | EntityKind.HOST:
            return entity.value
        case EntityKind.URL:
            return _url_host(entity.value)
        case EntityKind.EMAIL | EntityKind.MAILBOX | EntityKind.USER:
            return entity.value.rpartition("@")[2] if "@" in entity.value else None
        case _:
            return None


def _url_host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return `text` as an address; an IPv4-mapped IPv6 address as IPv4; None for other text."""
    try:
        address = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _network(text: str) -> AnyNetwork | None:
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        return None


def _is_in(address: IPv4Address | IPv6Address, networks: Iterable[AnyNetwork]) -> bool:
    return any(address in network for network in networks)


def _is_below(name: str, domains: frozenset[str]) -> bool:
    """Return whether `name` is one of these domains or below one."""
    labels = name.split(".")
    return any(".".join(labels[at:]) in domains for at in range(len(labels)))
