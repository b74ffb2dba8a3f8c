"""`tocsin webhooks`: fresh keys for the signatures of webhooks."""

from __future__ import annotations

import sys
from base64 import b64encode
from secrets import token_bytes

import typer

app = typer.Typer(no_args_is_help=True, help="Fresh keys for the signatures of webhooks.")


@app.command("new-secret")
def new_secret() -> None:
    """Print a fresh shared secret, for `secret`, on standard output, and nothing else."""
    print(_spelt("whsec_", token_bytes(32)))


@app.command("new-signing-key")
def new_signing_key() -> None:
    """Print a fresh signing key, for `signing_key`, on standard output, and nothing else.

    Its public key, which receivers verify with, stands on standard error; `tocsin check` shows it
    as well.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    print(_spelt("whsk_", key.private_bytes_raw() + public))
    print(f"give receivers its public key: {_spelt('whpk_', public)}", file=sys.stderr)


def _spelt(prefix: str, content: bytes) -> str:
    """Return a key as Standard Webhooks 1.0.0 writes it."""
    return prefix + b64encode(content).decode()
