"""Settings of the intake on NATS JetStream."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from tocsin import Duration, Intake, LocalPath, ServerUrl


class NatsSettings(Intake.Settings):
    """Settings under [intake]."""

    servers: tuple[str, ...] = Field(
        min_length=1,
        max_length=9,
        description="Addresses of all servers of the cluster, such as "
        "tls://nats-1.example.org:4222. If a server is unavailable, a node uses another one.",
    )
    allow_plain: bool = Field(
        default=False,
        description="Allow nats:// addresses of other machines, to which Tocsin sends bodies and "
        "credentials unencrypted.",
    )
    user: str | None = Field(default=None, description="Name of the NATS user.")
    password: SecretStr | None = Field(default=None, description="Password of the NATS user.")
    token: SecretStr | None = Field(
        default=None, description="NATS token, instead of a user and password."
    )
    credentials_file: LocalPath | None = Field(
        default=None,
        description="File with a JWT and its seed, instead of a user and password.",
    )
    ca_file: LocalPath | None = Field(
        default=None,
        description="PEM file with the certificate authorities of the servers, instead of the "
        "system's.",
    )
    client_certificate: LocalPath | None = Field(
        default=None, description="PEM file with a client certificate, for mutual TLS."
    )
    client_key: LocalPath | None = Field(
        default=None, description="PEM file with the key of the client certificate."
    )
    stream: str = Field(
        default="TOCSIN_INTAKE",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Name of the stream. If several deployments of Tocsin use the same servers, "
        "each needs its own stream and subject.",
    )
    subject: str = Field(
        default="tocsin.intake",
        pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$",
        max_length=64,
        description="First part of the subjects; the name of the provider is the last part.",
    )
    replicas: Literal[1, 3, 5] = Field(
        default=3,
        description="Number of servers that keep each push. Tocsin uses this value when it "
        "creates the stream.",
    )
    keep_for: Duration = Field(
        default=timedelta(days=7),
        ge=timedelta(hours=1),
        description="Time for which the stream keeps each push. Tocsin uses this value when it "
        "creates the stream. After you restore a backup, Tocsin reads the stream from the position "
        "in the backup, so set a longer time than the time between two backups.",
    )
    max_mib: int = Field(
        default=10_240,
        ge=1,
        le=100_000_000,
        description="Maximum size of the stream in MiB. Tocsin uses this value when it creates the "
        "stream. If the stream is full, Tocsin stores new pushes directly in the database.",
    )
    monitoring: tuple[ServerUrl, ...] = Field(
        default=(),
        max_length=9,
        description="Monitoring URLs of all servers of the cluster, such as "
        "https://nats-1.example.org:8222. `tocsin check` uses them to verify that each server sets "
        "`sync_interval: always`.",
    )

    @property
    def allow_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The addresses of monitoring ports on this machine, which need no encryption."""
        hosts = {host for host in self.own_hosts() if _is_local(host)}
        if "localhost" in hosts:
            hosts = hosts - {"localhost"} | {"127.0.0.1", "::1"}
        return tuple(ip_network(host) for host in sorted(hosts))

    def own_hosts(self) -> frozenset[str]:
        """Return the hosts of the monitoring URLs."""
        hosts = (urlsplit(url).hostname for url in self.monitoring)
        return frozenset(host for host in hosts if host)

    @field_validator("servers")
    @classmethod
    def _are_addresses(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        for server in servers:
            parts = urlsplit(server)
            if parts.scheme not in {"nats", "tls"} or not parts.hostname or parts.path.strip("/"):
                raise ValueError(f"found {server!r}; write tls://host:port or nats://host:port")
            if parts.username or parts.password:
                raise ValueError("found credentials in an address; use `user` and `password`")
        return servers

    @model_validator(mode="after")
    def _are_encrypted(self) -> Self:
        for server in self.servers:
            parts = urlsplit(server)
            if parts.scheme == "nats" and not (self.allow_plain or _is_local(parts.hostname or "")):
                raise ValueError(f"found {server!r}; use tls://, or set `allow_plain = true`")
        return self


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
