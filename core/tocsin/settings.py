"""The service's own settings: the environment variables `TOCSIN_*`."""

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
"""Variables of those who call the API; no settings of the service."""


Network = IPv4Network | IPv6Network

_LOOPBACK = re.compile(r"http://(localhost|127(\.[0-9]+){3}|\[::1\])([:/]|$)")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")


class NodeRole(Vocabulary):
    """Part of what there is to do, which some nodes may leave to others."""

    API = "api"
    SYNC = "sync"
    INVESTIGATE = "investigate"
    SCHEDULE = "schedule"
    DELIVER = "deliver"


class Settings(BaseSettings):
    """What the environment says about how to run; read once, at start."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        hide_input_in_errors=True,
        env_ignore_empty=True,
        enable_decoding=False,
    )

    data_dir: Path = Field(
        default=Path("data"), description="Where the embedded database and generated keys live."
    )
    database_url: str = Field(
        default="",
        description="`sqlite:///path` or `postgresql://user:password@host/name`; by default "
        "`tocsin.db` in the data directory.",
    )
    plugins_file: Path = Field(
        default=Path("plugins.toml"), description="The file that enables and configures plugins."
    )
    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="The port to listen on.")
    base_url: str = Field(
        default="",
        description="Where others reach this service, for links in events; by default "
        "`http://HOST:PORT`.",
    )
    auth_url: str = Field(
        default="",
        description="Where others reach the token endpoint, and the issuer that access tokens "
        "name; by default the base URL.",
    )
    access_token_seconds: int = Field(
        default=1800, ge=60, le=86_400, description="How long an access token lives."
    )
    key_prefix: str = Field(
        default="sk_live_",
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_]{0,30}_)?$",
        description="What new API keys begin with. Keys that were made with another stay valid.",
    )
    tls_terminated: bool = Field(
        default=False,
        description="Declares that something in front speaks TLS, so that Tocsin may listen on an "
        "address other than loopback.",
    )
    templates_dir: Path | None = Field(
        default=None,
        description="A folder of templates of your own, which come before those of plugins.",
    )
    allow_networks: tuple[Network, ...] = Field(
        default=(),
        description="Networks, separated by commas, that destinations made over HTTP may be "
        "allowed to reach beside public addresses.",
    )
    trusted_proxies: tuple[Network, ...] = Field(
        default=(),
        description="Networks, separated by commas, whose `X-Forwarded-For` is believed.",
    )
    cors_origins: tuple[str, ...] = Field(
        default=(),
        description="Origins, separated by commas, whose pages may call the API; by default none.",
    )
    rate_limit: int = Field(
        default=600, ge=1, le=1_000_000, description="Requests a minute for each credential."
    )
    rate_burst: int = Field(
        default=100, ge=1, le=1_000_000, description="How many of them at once."
    )
    auth_failure_limit: int = Field(
        default=60,
        ge=1,
        le=1_000_000,
        description="Failed authentications a minute for each source address.",
    )
    oidc_issuer: str = Field(
        default="",
        description="The OpenID Connect issuer whose tokens admit admins; none if unset.",
    )
    oidc_audience: str = Field(
        default="", description="The audience that its access tokens must name."
    )
    oidc_role_claim: str = Field(
        default="roles",
        description="The claim that lists the roles, members joined by dots, such as "
        "`realm_access.roles`.",
    )
    oidc_role: str = Field(
        default="admin", min_length=1, description="The role that makes an admin."
    )
    oidc_viewer_role: str = Field(
        default="viewer",
        min_length=1,
        description="The role that lets people look at the console, and change nothing.",
    )
    oidc_client_id: str = Field(
        default="",
        max_length=500,
        description="What Tocsin is to the issuer, for people to sign in to the console there; "
        "nobody does if unset.",
    )
    oidc_client_secret: SecretStr | None = Field(
        default=None,
        description="By what Tocsin proves to the issuer who it is; none for a public client.",
    )
    encryption_key: SecretStr | None = Field(
        default=None,
        description="The key that secrets are encrypted with at rest: 32 bytes in URL-safe base64. "
        "Generated beside a SQLite database, required with PostgreSQL.",
    )
    encryption_key_file: Path | None = Field(
        default=None, description="A file that holds the encryption key, instead."
    )
    metrics_token: SecretStr | None = Field(
        default=None,
        description="What `/metrics` asks for as a bearer token; without one, only callers on the "
        "same machine are answered.",
    )
    metrics_token_file: Path | None = Field(
        default=None, description="A file that holds the metrics token, instead."
    )
    retention_days: int | None = Field(
        default=None,
        ge=32,
        le=36_500,
        description="How long events are kept whose deliveries have all ended; for ever if unset. "
        "32 days at least, since `tocsin prove` accounts for 31.",
    )
    archive_dir: Path | None = Field(
        default=None,
        description="A folder that they are written to before they are removed; none if unset.",
    )
    schedule_failure_limit: int = Field(
        default=5,
        ge=1,
        le=1_000,
        description="After how many failures in a row a schedule is disabled that does not say it "
        "itself.",
    )
    roles: tuple[NodeRole, ...] = Field(
        default=tuple(NodeRole),
        min_length=1,
        description="What this node does, separated by commas: `api`, `sync`, `investigate`, "
        "`schedule`, `deliver`; all by default. Among the nodes of a database each role is needed.",
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="`console` for people, `json` for programs."
    )

    @field_validator("base_url", "auth_url", "oidc_issuer")
    @classmethod
    def _absolute(cls, value: str, info: ValidationInfo) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("give an absolute URL, such as https://tocsin.example.org")
        # an issuer is compared as it is, a slash at its end included
        return value if info.field_name == "oidc_issuer" else value.rstrip("/")

    @field_validator("templates_dir")
    @classmethod
    def _there(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_dir():
            raise ValueError("give a folder that is there, such as /etc/tocsin/templates")
        return value and value.absolute()

    @field_validator("allow_networks", "trusted_proxies", mode="before")
    @classmethod
    def _networks(cls, value: str | Sequence[Network]) -> list[Network]:
        try:
            return [ip_network(part) for part in _parts(value)]
        except ValueError as error:
            raise ValueError(f"give networks such as 10.20.0.0/16 ({error})") from None

    @field_validator("roles", mode="before")
    @classmethod
    def _roles(cls, value: str | Sequence[NodeRole]) -> list[NodeRole]:
        return list(dict.fromkeys(NodeRole.parse(part) for part in _parts(value)))

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _origins(cls, value: str | Sequence[str]) -> list[str]:
        origins = _parts(value)
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(f"give origins such as https://soar.example.org, not {origin!r}")
        return origins

    @property
    def database(self) -> str:
        """The database's URL, the default filled in."""
        return self.database_url or f"sqlite:///{self.data_dir / 'tocsin.db'}"

    @property
    def public_url(self) -> str:
        """The base URL, the default filled in."""
        return self.base_url or f"http://{self._bracketed_host}:{self.port}"

    @property
    def issuer_url(self) -> str:
        """The URL of the token endpoint's base, the default filled in."""
        return self.auth_url or self.public_url

    @property
    def is_exposed(self) -> bool:
        """Whether what is sent here could be read on its way."""
        secure = self.tls_terminated or self.public_url.startswith("https://")
        return not secure and not self._listens_on_loopback

    @property
    def listens_everywhere(self) -> bool:
        """Whether the host stands for every address of this machine."""
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


def _parts(value: str | Sequence[Any]) -> list[Any]:
    """Return the parts of what stood in a variable; a default is in parts already."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else list(value)


def _misspelt() -> list[ConfigurationProblem]:
    """Return a problem for each variable that is almost one of ours."""
    known = [name.upper() for name in Settings.model_fields]
    given = [name.removeprefix(PREFIX) for name in os.environ if name.startswith(PREFIX)]
    own = {name.removeprefix(PREFIX) for name in CALLERS}.union(known)
    # compared without the prefix, by which any two would be somewhat alike
    return [
        ConfigurationProblem("environment", PREFIX + name, "unknown setting", f"remove it{hint}")
        for name in given
        if name not in own
        and (hint := suggest_nearest(name, _alike(name, known)).replace("'", f"'{PREFIX}", 1))
    ]


def _alike(name: str, known: Sequence[str]) -> list[str]:
    """Return the names whose first words are alike: JIRA_CLIENT_SECRET is an operator's own."""
    first = name.partition("_")[0]
    return [it for it in known if suggest_nearest(first, [it.partition("_")[0]])]


def _disagreements(settings: Settings) -> Iterator[ConfigurationProblem]:
    """Return a problem for each setting that does not go with another."""
    if settings.is_exposed:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}HOST",
            f"found {settings.host!r}, where credentials would arrive in plain text",
            f"listen on 127.0.0.1, or put TLS in front and set {PREFIX}BASE_URL to its https:// "
            f"address or {PREFIX}TLS_TERMINATED=true",
        )
    if settings.listens_everywhere and not settings.base_url:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}BASE_URL",
            f"found nothing, while {PREFIX}HOST={settings.host} is no address to reach it by",
            "set it to the address that others use, such as https://tocsin.example.org",
        )
    if settings.archive_dir is not None and settings.retention_days is None:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}ARCHIVE_DIR",
            "found a folder, to which nothing would be written",
            f"set {PREFIX}RETENTION_DAYS too",
        )
    if settings.oidc_issuer.startswith("http://") and not _LOOPBACK.match(settings.oidc_issuer):
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}OIDC_ISSUER",
            "found an issuer without TLS, whose keys anyone on the way could replace",
            "give an https:// URL",
        )
    if settings.metrics_token is not None and settings.metrics_token_file is not None:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}METRICS_TOKEN_FILE",
            f"found a token beside {PREFIX}METRICS_TOKEN",
            "set one of them",
        )
    yield from _disagreements_on_oidc(settings)


def _disagreements_on_oidc(settings: Settings) -> Iterator[ConfigurationProblem]:
    purposes = settings.oidc_audience or settings.oidc_client_id
    if settings.oidc_issuer and not purposes:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}OIDC_AUDIENCE",
            "found nothing",
            f"with {PREFIX}OIDC_ISSUER, set {PREFIX}OIDC_AUDIENCE for its access tokens, "
            f"{PREFIX}OIDC_CLIENT_ID for people to sign in to the console, or both",
        )
    if purposes and not settings.oidc_issuer:
        given = "AUDIENCE" if settings.oidc_audience else "CLIENT_ID"
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}OIDC_ISSUER",
            f"found nothing, beside {PREFIX}OIDC_{given}",
            "set both or neither",
        )
    if settings.oidc_client_secret is not None and not settings.oidc_client_id:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}OIDC_CLIENT_ID",
            f"found nothing, beside {PREFIX}OIDC_CLIENT_SECRET",
            "set both or neither",
        )


def load_settings() -> Settings:
    """Return the settings; ConfigurationError with every problem at once where there are any."""
    problems = _misspelt()
    try:
        settings = Settings()
        problems += _disagreements(settings)
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
