"""Credentials: API keys, API clients, admin tokens, OpenID Connect and console sessions."""

from tocsin.credentials.access_tokens import AccessToken, AccessTokens, open_tokens, revoke_token
from tocsin.credentials.admins import Admins
from tocsin.credentials.api_clients import (
    ApiClient,
    ClientStatus,
    create_api_client,
    disable_api_client,
    list_api_clients,
    load_api_client,
    regenerate_secret,
    revoke_tokens,
    to_api_client,
)
from tocsin.credentials.api_keys import (
    ApiKey,
    KeyStatus,
    create_api_key,
    disable_api_key,
    list_api_keys,
    load_api_key,
    rotate_api_key,
    to_api_key,
)
from tocsin.credentials.authentication import (
    AuthenticationError,
    Authenticator,
    Credential,
    Principal,
    ProofRequired,
)
from tocsin.credentials.console_sessions import (
    ConsoleRole,
    ConsoleSession,
    begin_session,
    end_session,
    end_sessions_by_kind,
    find_session,
    form_token,
    is_form_token,
)
from tocsin.credentials.formats import (
    DEFAULT_PREFIX,
    ClientSecret,
    KeyValue,
    generate_client_id,
    generate_client_secret,
    generate_key,
    generate_value,
    parse_client,
    parse_key,
)
from tocsin.credentials.hashing import BusyError, Hasher
from tocsin.credentials.oidc_discovery import IssuerUnavailable
from tocsin.credentials.oidc_sign_in import CALLBACK, Oidc, OidcSignIn, SignInResult, open_oidc
from tocsin.credentials.oidc_tokens import OidcAdmin, OidcIssuer
from tocsin.credentials.records import NoSuchRecordError, NotActiveError, RecordPage, Scope
from tocsin.credentials.tokens import TokenError, read_expiry
from tocsin.credentials.usage import Usage
from tocsin.credentials.vault import Vault, open_proven_vault, open_vault
from tocsin.credentials.verification_cache import VerificationCache

__all__ = [
    "CALLBACK",
    "DEFAULT_PREFIX",
    "AccessToken",
    "AccessTokens",
    "Admins",
    "ApiClient",
    "ApiKey",
    "AuthenticationError",
    "Authenticator",
    "BusyError",
    "ClientSecret",
    "ClientStatus",
    "ConsoleRole",
    "ConsoleSession",
    "Credential",
    "Hasher",
    "IssuerUnavailable",
    "KeyStatus",
    "KeyValue",
    "NoSuchRecordError",
    "NotActiveError",
    "Oidc",
    "OidcAdmin",
    "OidcIssuer",
    "OidcSignIn",
    "Principal",
    "ProofRequired",
    "RecordPage",
    "Scope",
    "SignInResult",
    "TokenError",
    "Usage",
    "Vault",
    "VerificationCache",
    "begin_session",
    "create_api_client",
    "create_api_key",
    "disable_api_client",
    "disable_api_key",
    "end_session",
    "end_sessions_by_kind",
    "find_session",
    "form_token",
    "generate_client_id",
    "generate_client_secret",
    "generate_key",
    "generate_value",
    "is_form_token",
    "list_api_clients",
    "list_api_keys",
    "load_api_client",
    "load_api_key",
    "open_oidc",
    "open_proven_vault",
    "open_tokens",
    "open_vault",
    "parse_client",
    "parse_key",
    "read_expiry",
    "regenerate_secret",
    "revoke_token",
    "revoke_tokens",
    "rotate_api_key",
    "to_api_client",
    "to_api_key",
]
