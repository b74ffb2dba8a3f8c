"""`tocsin webhooks`: webhook secrets and signing keys."""

from __future__ import annotations

import sys
from base64 import b64encode
from secrets import token_bytes

import typer

from tocsin.cli.output import AsJson, print_json, print_text, print_value

app = typer.Typer(no_args_is_help=True, help="Generate webhook secrets and signing keys.")


@app.command("new-secret")
def new_secret(as_json: AsJson = False) -> None:
    """Generate a shared secret for a webhook.

    Use the secret as the `secret` setting of the webhook.
    """
    secret = _encode("whsec_", token_bytes(32))
    print_value("secret", secret, as_json=as_json)


@app.command("new-signing-key")
def new_signing_key(as_json: AsJson = False) -> None:
    """Generate a signing key for a webhook.

    Use the key as the `signing_key` setting of the webhook. Standard output contains only the
    signing key. The public key goes to standard error, and `tocsin check` also shows it. Receivers
    verify signatures with the public key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    signing_key = _encode("whsk_", key.private_bytes_raw() + public)
    public_key = _encode("whpk_", public)
    if as_json:
        print_json({"signing_key": signing_key, "public_key": public_key})
    else:
        print_text(signing_key)
        print_text(f"public key for receivers: {public_key}", file=sys.stderr)


def _encode(prefix: str, content: bytes) -> str:
    """Return a key in the format of Standard Webhooks 1.0.0."""
    return prefix + b64encode(content).decode()
