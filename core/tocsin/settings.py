"""Service settings: the `TOCSIN_*` environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from tocsin.errors import ConfigurationError, ConfigurationProblem
from tocsin.model import Vocabulary
from tocsin.validation import explain_errors, suggest_nearest

PREFIX = "TOCSIN_"
CALLERS = {f"{PREFIX}URL", f"{PREFIX}ADMIN_TOKEN", f"{PREFIX}API_KEY"}
"""Variables of API callers, which are not settings of the service."""


Network = IPv4Network | IPv6Network

_LOOPBACK = re.compile(r"http://(localhost|127(\.[0-9]+){3}|\[::1\])([:/]|$)")
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
        description="Directory of the embedded database, generated keys and the head of the "
        "database.",
    )
    database_url: str = Field(
        default="",
        description="`sqlite:///path` or `postgresql://user:password@host/name`. Default: "
        "`tocsin.db` in the data directory.",
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
        default=1800, ge=60, le=86_400, description="Lifetime of access tokens, in seconds."
    )
    key_prefix: str = Field(
        default="sk_live_",
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_]{0,30}_)?$",
        description="Prefix of new API keys. Keys with an earlier prefix stay valid.",
    )
    tls_terminated: bool = Field(
        default=False,
        description="Set to true if a proxy in front of Tocsin terminates TLS. Allows listening on "
        "addresses other than loopback.",
    )
    templates_dir: Path | None = Field(
        default=None,
        description="Directory of your own templates, which take precedence over those of plugins.",
    )
    allow_networks: tuple[Network, ...] = Field(
        default=(),
        description="Networks, separated by commas, that destinations created over the API may "
        "reach in addition to public addresses.",
    )
    trusted_proxies: tuple[Network, ...] = Field(
        default=(),
        description="Networks, separated by commas, whose `X-Forwarded-For` header is trusted.",
    )
    cors_origins: tuple[str, ...] = Field(
        default=(),
        description="Origins, separated by commas, whose pages may call the API. Default: none.",
    )
    rate_limit: int = Field(
        default=600, ge=1, le=1_000_000, description="Requests per minute for each credential."
    )
    rate_burst: int = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="Burst size: requests that a credential can send at once.",
    )
    auth_failure_limit: int = Field(
        default=60,
        ge=1,
        le=1_000_000,
        description="Failed authentications per minute for each source address.",
    )
    oidc_issuer: str = Field(
        default="",
        description="OpenID Connect issuer of admins. Default: none.",
    )
    oidc_audience: str = Field(
        default="", description="Audience that the issuer's access tokens must contain."
    )
    oidc_role_claim: str = Field(
        default="roles",
        description="Claim that lists the roles, as a dotted path such as `realm_access.roles`.",
    )
    oidc_role: str = Field(default="admin", min_length=1, description="Role of admins.")
    oidc_viewer_role: str = Field(
        default="viewer",
        min_length=1,
        description="Role of console users with read-only access.",
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
        description="Interval, in seconds, at which a console session is checked with the issuer.",
    )
    encryption_key: SecretStr | None = Field(
        default=None,
        description="Key that encrypts secrets at rest: 32 bytes in URL-safe base64. Generated "
        "next to a SQLite database; required with PostgreSQL.",
    )
    encryption_key_file: Path | None = Field(
        default=None, description="File that contains the encryption key, as an alternative."
    )
    upgrade_copy: bool = Field(
        default=True, description="Copy a SQLite database before its schema is upgraded."
    )
    backup_dir: Path | None = Field(
        default=None, description="Directory of backups. Default: `backups` in the data directory."
    )
    backup_key_file: Path | None = Field(
        default=None, description="File with the key that encrypts backups. Default: no encryption."
    )
    metrics_token: SecretStr | None = Field(
        default=None,
        description="Bearer token for `/metrics`. Without a token, only callers on the same "
        "machine get metrics.",
    )
    metrics_token_file: Path | None = Field(
        default=None, description="File that contains the metrics token, as an alternative."
    )
    retention_days: int | None = Field(
        default=None,
        ge=32,
        le=36_500,
        description="Days to keep events. Use `events` in `[retention]` of `plugins.toml`, which "
        "takes precedence.",
    )
    archive_dir: Path | None = Field(
        default=None,
        description="Directory in which to archive records before they are removed. Use "
        "`archive` in `[retention]`, which takes precedence.",
    )
    schedule_failure_limit: int = Field(
        default=5,
        ge=1,
        le=1_000,
        description="Consecutive failures before a schedule is disabled, unless it has its own "
        "limit.",
    )
    roles: tuple[NodeRole, ...] = Field(
        default=tuple(NodeRole),
        min_length=1,
        description="Roles of this node, separated by commas: `api`, `sync`, `investigate`, "
        "`schedule`, `deliver`. Default: all. Each role is needed on at least one node.",
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="`console` for readable lines, `json` for log collectors."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="Lowest level to log. `debug` adds a line for each request that is served or "
        "sent, without paths of URLs, headers and bodies.",
    )

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

    @property
    def database(self) -> str:
        """The database URL or its default."""
        return self.database_url or f"sqlite:///{self.data_dir / 'tocsin.db'}"

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


def _split(value: str | Sequence[Any]) -> list[Any]:
    """Split the value of a variable; defaults are already split."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else list(value)


def _find_misspelled() -> list[ConfigurationProblem]:
    """Return a problem for each variable that is almost the name of a setting."""
    known = [name.upper() for name in Settings.model_fields]
    given = [name.removeprefix(PREFIX) for name in os.environ if name.startswith(PREFIX)]
    own = {name.removeprefix(PREFIX) for name in CALLERS}.union(known)
    # compared without the prefix, which would make any two names similar
    return [
        ConfigurationProblem("environment", PREFIX + name, "unknown setting", f"remove it{hint}")
        for name in given
        if name not in own
        and (
            hint := suggest_nearest(name, _select_similar(name, known)).replace(
                "'", f"'{PREFIX}", 1
            )
        )
    ]


def _select_similar(name: str, known: Sequence[str]) -> list[str]:
    """Return the names with a similar first word: JIRA_CLIENT_SECRET is the operator's own."""
    first = name.partition("_")[0]
    return [other for other in known if suggest_nearest(first, [other.partition("_")[0]])]


def _find_conflicts(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield each setting that conflicts with another: name, what was found, what would be right."""
    if settings.is_exposed:
        yield (
            "HOST",
            f"found {settings.host!r}, where credentials would be sent unencrypted",
            (
                f"listen on 127.0.0.1, or terminate TLS in front of Tocsin and set "
                f"{PREFIX}BASE_URL to the https:// address or {PREFIX}TLS_TERMINATED=true"
            ),
        )
    if settings.listens_everywhere and not settings.base_url:
        yield (
            "BASE_URL",
            f"not set, and {PREFIX}HOST={settings.host} is not reachable from other machines",
            "set it to the external URL, such as https://tocsin.example.org",
        )
    if settings.oidc_issuer.startswith("http://") and not _LOOPBACK.match(settings.oidc_issuer):
        yield (
            "OIDC_ISSUER",
            "found an issuer without TLS, whose keys could be replaced in transit",
            "use an https:// URL",
        )
    if settings.metrics_token is not None and settings.metrics_token_file is not None:
        yield (
            "METRICS_TOKEN_FILE",
            f"found both this setting and {PREFIX}METRICS_TOKEN",
            "set only one of them",
        )
    yield from _find_oidc_conflicts(settings)


def _find_oidc_conflicts(settings: Settings) -> Iterator[tuple[str, str, str]]:
    purposes = settings.oidc_audience or settings.oidc_client_id
    if settings.oidc_issuer and not purposes:
        yield (
            "OIDC_AUDIENCE",
            f"not set, but {PREFIX}OIDC_ISSUER is",
            (
                f"set {PREFIX}OIDC_AUDIENCE to accept access tokens, {PREFIX}OIDC_CLIENT_ID to "
                "allow sign-in to the console, or both"
            ),
        )
    if purposes and not settings.oidc_issuer:
        given = "AUDIENCE" if settings.oidc_audience else "CLIENT_ID"
        yield "OIDC_ISSUER", f"not set, but {PREFIX}OIDC_{given} is", "set both or neither"
    if settings.oidc_client_secret is not None and not settings.oidc_client_id:
        yield "OIDC_CLIENT_ID", f"not set, but {PREFIX}OIDC_CLIENT_SECRET is", "set both or neither"


def load_settings() -> Settings:
    """Return the settings; raises ConfigurationError with all problems at once."""
    problems = _find_misspelled()
    try:
        settings = Settings()
        problems += [
            ConfigurationProblem("environment", PREFIX + name, found, expected)
            for name, found, expected in _find_conflicts(settings)
        ]
    except ValidationError as error:
        problems += [
            ConfigurationProblem(
                "environment", PREFIX + mistake.path[0].upper(), mistake.found, mistake.expected
            )
            for mistake in explain_errors(error, Settings)
        ]
    if problems:
        raise ConfigurationError(problems)
    return settings
