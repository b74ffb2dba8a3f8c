"""What the settings say of an OpenID Connect issuer, made."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass

from yarl import URL

from tocsin.clock import Clock
from tocsin.credentials.oidc import OidcIssuer
from tocsin.credentials.oidc_attempts import SIGN_IN_KEY_PURPOSE, SignInAttempts
from tocsin.credentials.oidc_codes import OidcClient
from tocsin.credentials.oidc_keys import IssuerKeys
from tocsin.credentials.oidc_sign_in import OidcRoles, OidcSignIn
from tocsin.credentials.vault import Vault
from tocsin.hookspecs import HttpClient
from tocsin.net import open_client
from tocsin.settings import Settings

CALLBACK = "/sign-in/callback"
"""Where the issuer sends people back to, below the base URL."""


@dataclass(frozen=True, slots=True)
class Oidc:
    """The two things that an issuer may be named for."""

    issuer: OidcIssuer | None = None
    """Whose access tokens admit admins."""
    sign_in: OidcSignIn | None = None
    """Where people sign in to the console."""


def open_oidc(settings: Settings, vault: Vault, clock: Clock, stack: AsyncExitStack) -> Oidc:
    """Return what the issuer is named for, closed with the stack; nothing where there is none."""
    if not settings.oidc_issuer:
        return Oidc()
    # The operator named the issuer, so it may be on a private network.
    http = open_client(allow_hosts=[URL(settings.oidc_issuer).host or ""])
    stack.push_async_callback(http.close)
    keys = IssuerKeys(settings.oidc_issuer, http, clock)
    return Oidc(
        issuer=_build_issuer(settings, keys, clock) if settings.oidc_audience else None,
        sign_in=_build_sign_in(settings, vault, keys, http, clock)
        if settings.oidc_client_id
        else None,
    )


def _build_issuer(settings: Settings, keys: IssuerKeys, clock: Clock) -> OidcIssuer:
    return OidcIssuer(
        settings.oidc_issuer,
        audience=settings.oidc_audience,
        role_claim=settings.oidc_role_claim,
        role=settings.oidc_role,
        keys=keys,
        clock=clock,
    )


def _build_sign_in(
    settings: Settings, vault: Vault, keys: IssuerKeys, http: HttpClient, clock: Clock
) -> OidcSignIn:
    secret = settings.oidc_client_secret
    client = OidcClient(
        id=settings.oidc_client_id,
        secret=None if secret is None else secret.get_secret_value(),
        redirect_uri=settings.public_url + CALLBACK,
    )
    return OidcSignIn(
        settings.oidc_issuer,
        client=client,
        roles=OidcRoles(settings.oidc_role_claim, settings.oidc_role, settings.oidc_viewer_role),
        attempts=SignInAttempts(vault.derive(SIGN_IN_KEY_PURPOSE), clock),
        keys=keys,
        http=http,
        clock=clock,
    )
