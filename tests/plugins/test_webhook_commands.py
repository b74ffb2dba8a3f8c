"""Commands that create keys in the format that the channel accepts."""

import pytest
from typer.testing import CliRunner

from tocsin.cli.webhooks import app
from tocsin_plugins.webhook.signing import Ed25519Signer, SharedSecret


def run(command):
    result = CliRunner().invoke(app, [command])
    assert result.exit_code == 0
    return result


def test_a_secret_of_256_bits_is_all_that_is_printed():
    result = run("new-secret")
    secret = result.stdout.removesuffix("\n")
    assert secret.startswith("whsec_")
    assert len(SharedSecret.decode(secret).key) == 32
    assert result.stderr == ""


def test_a_signing_key_is_printed_alone_and_its_public_key_beside_it():
    result = run("new-signing-key")
    key = result.stdout.removesuffix("\n")
    assert key.startswith("whsk_")
    assert len(key) == len("whsk_") + 88  # 64 bytes in base64
    public = Ed25519Signer.decode(key).describe()
    assert result.stderr == f"public key for receivers: {public}\n"


@pytest.mark.parametrize("command", ["new-secret", "new-signing-key"])
def test_no_two_keys_are_the_same(command):
    assert run(command).stdout != run(command).stdout
