"""Signatures, verified with third-party code: two libraries for v1, cryptography for v1a."""

import base64
import json
from datetime import UTC, datetime

import pytest
import standardwebhooks
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from signatures import svix_webhook
from tocsin_plugins.webhook.signing import Ed25519Signer, SharedSecret, signature_headers

# The published test vectors of Standard Webhooks.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
KEY = (
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
)
KEY_SIGNATURE = (
    "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
)
PUBLIC_KEY = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
EVENT_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
SENT_AT = datetime.fromtimestamp(1614265330.9, UTC)
BODY = b'{"test": 2432232314}'

seeds = st.binary(min_size=32, max_size=32)


def b64(content):
    return base64.b64encode(content).decode()


def public_bytes(seed):
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def verify_v1a(public_key, signature, content):
    """Raise InvalidSignature unless the signature is genuine."""
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_")))
    key.verify(base64.b64decode(signature.removeprefix("v1a,")), content)


def test_the_published_vectors_are_signed_as_published():
    signers = [SharedSecret.decode(SECRET), Ed25519Signer.decode(KEY)]
    assert signature_headers(signers, EVENT_ID, SENT_AT, BODY) == {
        "webhook-id": EVENT_ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": f"{SIGNATURE} {KEY_SIGNATURE}",
    }


def test_the_published_public_key_is_shown():
    assert Ed25519Signer.decode(KEY).describe() == PUBLIC_KEY
    verify_v1a(PUBLIC_KEY, KEY_SIGNATURE, f"{EVENT_ID}.1614265330.".encode() + BODY)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: (
        st.lists(children, max_size=5) | st.dictionaries(st.text(max_size=9), children, max_size=5)
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text(), JSON, max_size=5),
    st.binary(min_size=24, max_size=64),
    seeds,
    st.booleans(),
)
def test_both_reference_libraries_accept_every_signature(data, key, seed, prefixed):
    body = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
    secret = ("whsec_" if prefixed else "") + b64(key)
    signers = [Ed25519Signer.decode(b64(seed)), SharedSecret.decode(secret)]
    headers = signature_headers(signers, EVENT_ID, datetime.now(UTC), body)
    assert standardwebhooks.Webhook(secret).verify(body, headers) == json.loads(body)
    svix_webhook(secret).verify(body, headers)


@given(seeds, st.binary())
def test_the_public_key_verifies_every_signature_and_nothing_else(seed, content):
    key = Ed25519Signer.decode("whsk_" + b64(seed))
    signature = key.sign(content)
    verify_v1a(key.describe(), signature, content)
    with pytest.raises(InvalidSignature):
        verify_v1a(key.describe(), signature, content + b" ")
    with pytest.raises(InvalidSignature):
        verify_v1a(PUBLIC_KEY, signature, content)


@given(st.binary(min_size=24, max_size=64))
def test_a_secret_may_miss_its_prefix_and_its_padding(key):
    text = b64(key)
    for secret in (text, text.rstrip("="), f"whsec_{text}", f"whsec_{text}".rstrip("=")):
        assert SharedSecret.decode(secret).key == key


@given(seeds)
def test_a_signing_key_may_miss_its_prefix_its_padding_and_its_public_half(seed):
    for text in (b64(seed), b64(seed + public_bytes(seed))):
        for spelling in (text, text.rstrip("="), f"whsk_{text}", f"whsk_{text}".rstrip("=")):
            assert Ed25519Signer.decode(spelling).key.private_bytes_raw() == seed


@given(seeds, seeds)
def test_a_signing_key_with_the_public_half_of_another_is_refused(seed, other):
    if seed != other:
        with pytest.raises(ValueError, match="does not match the seed"):
            Ed25519Signer.decode("whsk_" + b64(seed + public_bytes(other)))


@pytest.mark.parametrize("kind", [SharedSecret, Ed25519Signer])
@given(text=st.text(max_size=31))
def test_a_text_too_short_for_any_key_is_refused_with_what_is_right(kind, text):
    with pytest.raises(ValueError, match="followed by the base64 of"):
        kind.decode(text)


@pytest.mark.parametrize("signer", [SharedSecret.decode(SECRET), Ed25519Signer.decode(KEY)])
def test_no_key_shows_itself(signer):
    assert repr(signer) == f"{type(signer).__name__}()"
    for text in (SECRET, KEY):
        assert text.partition("_")[2] not in signer.describe()
