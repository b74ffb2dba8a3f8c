"""Hashes of random secrets, under which they are stored."""

from __future__ import annotations

from hashlib import sha256


def digest_secret(presented: str) -> str:
    """Return the hash of a secret of at least 256 random bits, in hexadecimal.

    A plain hash is enough, because such a secret cannot be guessed. The time that it takes to look
    up the hash says nothing about the secret.
    """
    return sha256(presented.encode("utf-8", "surrogatepass")).hexdigest()
