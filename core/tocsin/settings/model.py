"""Service settings: the `TOCSIN_*` environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import (
    Field,
    PrivateAttr,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from tocsin.model import Vocabulary

PREFIX = "TOCSIN_"
FILE_SUFFIX = "_FILE"
"""Suffix of the variable that names a file with a secret, as an alternative to the secret."""
Network = IPv4Network | IPv6Network

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")


class NodeRole(Vocabulary):
    """Role of a node; in a cluster, nodes can share the roles."""

    API = "api"
    SYNC = "sync"
    INVESTIGATE = "investigate"
    SCHEDULE = "schedule"
    DELIVER = "deliver"


class Settings(BaseSettings):
    """Settings from the environment, read once at start."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        hide_input_in_errors=True,
        env_ignore_empty=True,
        enable_decoding=False,
    )

    data_dir: Path = Field(
        default=Path("data"),
        description="Directory in which Tocsin stores the SQLite database, generated keys, "
        "`head.json` and `erasures.jsonl`.",
    )
    database_url: SecretStr = Field(
        default=SecretStr(""),
        description="`sqlite:///path` or `postgresql://user:password@host/name`. Default: "
        "`tocsin.db` in the data directory.",
    )
    database_session_url: SecretStr = Field(
        default=SecretStr(""),
        description="Second URL of the same PostgreSQL database, which bypasses any pooler that "
        "shares sessions. Used for notifications, cluster membership and local "
        "commands. Default: the database URL.",
    )
    database_read_url: SecretStr = Field(
        default=SecretStr(""),
        description="URL of a read replica of the PostgreSQL database, for lists, search, the "
        "graph and proofs. Default: the database itself.",
    )
    database_read_max_lag_seconds: int = Field(
        default=5,
        ge=2,
        le=300,
        description="How far the replica may lag behind, in seconds, before nodes read from the "
        "primary.",
    )
    plugins_file: Path = Field(
        default=Path("plugins.toml"), description="File that enables and configures plugins."
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on.")
    base_url: str = Field(
        default="",
        description="External URL of this service, used in links. Default: `http://HOST:PORT`.",
    )
    auth_url: str = Field(
        default="",
        description="External URL of the token endpoint, and issuer of access tokens. Default: "
        "the base URL.",
    )
    access_token_seconds: int = Field(
        default=1800, ge=60, le=86_400, description="How long access tokens are valid, in seconds."
    )
    key_prefix: str = Field(
        default="sk_live_",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_]{0,30}_$",
        description="Prefix of new API keys. Keys with an earlier prefix stay valid.",
    )
    tls_terminated: bool = Field(
        default=False,
        description="Set to true if a proxy in front of Tocsin terminates TLS. Allows listening on "
        "addresses other than loopback.",
    )
    templates_dir: Path | None = Field(
        default=None,
        description="Directory that contains your own templates, which take precedence over "
        "templates from plugins.",
    )
    allow_networks: tuple[Network, ...] = Field(
        default=(),
        description="Networks, separated by commas, that destinations created over the API may "
        "reach in addition to public addresses.",
    )
    trusted_proxies: tuple[Network, ...] = Field(
        default=(),
        description="Addresses of proxies whose `X-Forwarded-For` header is trusted, as networks "
        "separated by commas.",
    )
    cors_origins: tuple[str, ...] = Field(
        default=(),
        description="Origins whose web pages may call the API, separated by commas. Default: none.",
    )
    rate_limit: int = Field(
        default=600,
        ge=1,
        le=1_000_000,
        description="How many requests per minute each credential can send.",
    )
    rate_burst: int = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="How many requests a credential can send in one burst.",
    )
    auth_failure_limit: int = Field(
        default=60,
        ge=1,
        le=1_000_000,
        description="How many failed authentication attempts per minute are allowed from each "
        "source address.",
    )
    oidc_issuer: str = Field(
        default="",
        description="OpenID Connect issuer for admins and console users. Default: none.",
    )
    oidc_audience: str = Field(
        default="", description="Audience that the issuer's access tokens must contain."
    )
    oidc_role_claim: str = Field(
        default="roles",
        description="Claim in the issuer's tokens that lists the user's roles, as a dotted path "
        "such as `realm_access.roles`.",
    )
    oidc_role: str = Field(
        default="admin", min_length=1, description="Role that grants admin access."
    )
    oidc_operator_role: str = Field(
        default="",
        description="Role that grants the console role `operator`. If empty, nobody gets this "
        "role.",
    )
    oidc_analyst_role: str = Field(
        default="",
        description="Role that grants the console role `analyst`. If empty, nobody gets this role.",
    )
    oidc_auditor_role: str = Field(
        default="",
        description="Role that grants the console role `auditor`. If empty, nobody gets this role.",
    )
    oidc_viewer_role: str = Field(
        default="viewer",
        min_length=1,
        description="Role that grants read-only access to the console.",
    )
    oidc_client_id: str = Field(
        default="",
        max_length=500,
        description="Tocsin's client ID at the issuer, for sign-in to the console. Default: no "
        "single sign-on.",
    )
    oidc_client_secret: SecretStr | None = Field(
        default=None,
        description="Tocsin's client secret at the issuer. Leave unset for a public client.",
    )
    oidc_recheck_seconds: int = Field(
        default=900,
        ge=60,
        le=43_200,
        description="How often each console session is checked with the issuer, in seconds.",
    )
    encryption_key: SecretStr | None = Field(
        default=None,
        description="Key that encrypts secrets at rest: 32 bytes in URL-safe base64. With SQLite, "
        "Tocsin generates the key next to the database. With PostgreSQL, the key is "
        "required. During a rotation, set both the new key and the old key.",
    )
    upgrade_copy: bool = Field(
        default=True, description="Whether to copy a SQLite database before its schema is upgraded."
    )
    backup_dir: Path | None = Field(
        default=None,
        description="Directory in which Tocsin stores backups. Default: `backups` "
        "in the data directory.",
    )
    backup_key_file: Path | None = Field(
        default=None, description="File with the key that encrypts backups. Default: no encryption."
    )
    metrics_token: SecretStr | None = Field(
        default=None,
        description="Bearer token for `/metrics`. Without a token, only callers on the same "
        "machine can read the metrics.",
    )
    retention_days: int | None = Field(
        default=None,
        ge=32,
        le=36_500,
        description="How many days to keep events. Preferably set `events` in `[retention]` of "
        "`plugins.toml` instead, which takes precedence.",
    )
    archive_dir: Path | None = Field(
        default=None,
        description="Directory in which to archive records before they are removed. Preferably "
        "set `archive` in `[retention]` instead, which takes precedence.",
    )
    schedule_failure_limit: int = Field(
        default=5,
        ge=1,
        le=1_000,
        description="How many runs must fail in a row before a schedule without its own limit is "
        "disabled.",
    )
    roles: tuple[NodeRole, ...] = Field(
        default=tuple(NodeRole),
        min_length=1,
        description="Roles of this node, separated by commas: `api`, `sync`, `investigate`, "
        "`schedule`, `deliver`. Default: all roles. At least one node must have each role.",
    )
    event_loop: Literal["asyncio", "uvloop"] = Field(
        default="asyncio",
        description="Event loop of `tocsin serve`: `asyncio`, or `uvloop`, which "
        "requires the extra `uvloop`.",
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="`console` for readable lines, `json` for log collectors."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="Lowest level to log. `debug` adds a line for each incoming and outgoing "
        "request, without URL paths, headers or bodies.",
    )
    tracing: bool = Field(
        default=False,
        description="Whether to record traces with OpenTelemetry. The standard variables `OTEL_*` "
        "specify where to export them. Requires the extra `otel`.",
    )

    _secret_files: dict[str, Path] = PrivateAttr(default_factory=dict)

    @field_validator("base_url", "auth_url", "oidc_issuer")
    @classmethod
    def _check_url(cls, value: str, info: ValidationInfo) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("use an absolute URL, such as https://tocsin.example.org")
        # issuers are compared exactly, including a trailing slash
        return value if info.field_name == "oidc_issuer" else value.rstrip("/")

    @field_validator("templates_dir")
    @classmethod
    def _check_folder(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_dir():
            raise ValueError("use an existing directory, such as /etc/tocsin/templates")
        return value and value.absolute()

    @field_validator("allow_networks", "trusted_proxies", mode="before")
    @classmethod
    def _parse_networks(cls, value: str | Sequence[Network]) -> list[Network]:
        try:
            return [ip_network(part) for part in _split(value)]
        except ValueError as error:
            raise ValueError(f"use networks such as 10.20.0.0/16 ({error})") from None

    @field_validator("roles", mode="before")
    @classmethod
    def _parse_roles(cls, value: str | Sequence[NodeRole]) -> list[NodeRole]:
        return list(dict.fromkeys(NodeRole.parse(part) for part in _split(value)))

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _parse_origins(cls, value: str | Sequence[str]) -> list[str]:
        origins = _split(value)
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(f"use origins such as https://soar.example.org, not {origin!r}")
        return origins

    def note_secret_files(self, files: Mapping[str, Path]) -> None:
        """Record the files that secrets were read from, by setting."""
        self._secret_files.update(files)

    @property
    def secret_files(self) -> Mapping[str, Path]:
        """The files that secrets were read from, by setting."""
        return self._secret_files

    def describe_source(self, name: str) -> str:
        """Return the variable that gives a secret, and its file if it has one."""
        variable = f"{PREFIX}{name.upper()}"
        path = self._secret_files.get(name)
        return variable if path is None else f"{variable}{FILE_SUFFIX} ({path})"

    @property
    def database(self) -> str:
        """The database URL or its default."""
        given = self.database_url.get_secret_value()
        return given or f"sqlite:///{self.data_dir / 'tocsin.db'}"

    @property
    def session_database(self) -> str:
        """The database URL for what needs sessions of its own, as local commands do."""
        return self.database_session_url.get_secret_value() or self.database

    @property
    def public_url(self) -> str:
        """The base URL or its default."""
        return self.base_url or f"http://{self._bracketed_host}:{self.port}"

    @property
    def issuer_url(self) -> str:
        """The external URL of the token endpoint, or its default."""
        return self.auth_url or self.public_url

    @property
    def is_exposed(self) -> bool:
        """Whether the service accepts unencrypted connections from other machines."""
        secure = self.tls_terminated or self.public_url.startswith("https://")
        return not secure and not self._listens_on_loopback

    @property
    def listens_everywhere(self) -> bool:
        """Whether the service listens on all addresses of this machine."""
        return self.host in {"0.0.0.0", "::"}  # noqa: S104 - what it is compared with

    @property
    def _listens_on_loopback(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def _bracketed_host(self) -> str:
        try:
            return f"[{self.host}]" if ip_address(self.host).version == 6 else self.host  # noqa: PLR2004
        except ValueError:
            return self.host


SECRETS = tuple(
    name
    for name, field in Settings.model_fields.items()
    if SecretStr in (field.annotation, *get_args(field.annotation))
)
"""Settings that a file can hold, named by the variable with `FILE_SUFFIX`."""


def _split(value: str | Sequence[Any]) -> list[Any]:
    """Split the value of a variable; defaults are already split."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else list(value)
