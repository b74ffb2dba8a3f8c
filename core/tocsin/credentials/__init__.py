"""Who may call: API keys with their scopes, and admins with their tokens."""

from tocsin.credentials.admins import Admins
from tocsin.credentials.api_keys import ApiKey, create_api_key, load_api_key
from tocsin.credentials.authentication import (
    AdminToken,
    AuthenticationError,
    Authenticator,
    Credential,
    Principal,
    Unproven,
)
from tocsin.credentials.hashing import Hasher
from tocsin.credentials.key_format import DEFAULT_PREFIX, KeyValue, generate, parse
from tocsin.credentials.scopes import Scope
from tocsin.credentials.vault import Vault, open_vault

__all__ = [
    "DEFAULT_PREFIX",
    "AdminToken",
    "Admins",
    "ApiKey",
    "AuthenticationError",
    "Authenticator",
    "Credential",
    "Hasher",
    "KeyValue",
    "Principal",
    "Scope",
    "Unproven",
    "Vault",
    "create_api_key",
    "generate",
    "load_api_key",
    "open_vault",
    "parse",
]
