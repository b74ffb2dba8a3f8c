"""Verification of WebAuthn responses, whatever a browser sends."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from software_authenticator import SoftwareAuthenticator, decode, encode
from tocsin.credentials import (
    AuthenticationError,
    ConsoleRole,
    Passkey,
    Person,
    Vault,
    open_ceremonies,
    read_credential_id,
)
from tocsin.testing import ManualClock

CLOCK = ManualClock()
CEREMONIES = open_ceremonies(
    "https://tocsin.example", 8080, Vault("A" * 43 + "=", source="test"), CLOCK
)
BEN = Person(
    id="psn_1", name="ben", role=ConsoleRole.VIEWER, created_by="ana", created_at=CLOCK.now()
)
DEVICE = SoftwareAuthenticator()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def create() -> tuple[str, str]:
    """Return a sealed challenge and the response to it."""
    started = CEREMONIES.begin_creation(BEN, [])
    return started.sealed, DEVICE.create(started.options)


CREATED = create()
"""Made once, since lengths of signatures vary, and examples have to be reproducible."""
NEW = CEREMONIES.finish_creation(*CREATED, BEN)
PASSKEY = Passkey(
    id="pky_1",
    person_id=BEN.id,
    credential_id=NEW.credential_id,
    public_key=NEW.public_key,
    sign_count=0,
    label="",
    created_at=CLOCK.now(),
)


def sign() -> tuple[str, str]:
    """Return a sealed challenge and the signature of it."""
    started = CEREMONIES.begin_sign_in()
    return started.sealed, DEVICE.sign(started.options)


SIGNED = sign()


def spoil(answer: str, data) -> str:
    """Return the response with one part replaced, or some bytes of one changed."""
    parts = orjson.loads(answer)
    where = data.draw(st.sampled_from([parts, parts["response"]]))
    name = data.draw(st.sampled_from(sorted(where)))
    if isinstance(where[name], str) and data.draw(st.booleans()):
        content = bytearray(decode(where[name]) or b"\0")
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        where[name] = encode(bytes(content[: data.draw(st.integers(place + 1, len(content)))]))
    else:
        where[name] = data.draw(JSON)
    return orjson.dumps(parts).decode()


@given(st.data())
def test_a_spoiled_signature_is_refused_or_unused(data):
    sealed, answer = SIGNED
    spoiled = spoil(answer, data)
    used = ("clientDataJSON", "authenticatorData", "signature", "userHandle")
    before, after = (orjson.loads(each)["response"] for each in (answer, spoiled))
    try:
        read_credential_id(spoiled)
        use = CEREMONIES.finish_sign_in(sealed, spoiled, PASSKEY)
    except AuthenticationError:
        return
    assert use.passkey_id == PASSKEY.id
    assert all(before[name] == after[name] for name in used)


@given(st.data())
def test_a_spoiled_creation_is_refused_or_well_formed(data):
    sealed, answer = CREATED
    try:
        new = CEREMONIES.finish_creation(sealed, spoil(answer, data), BEN)
    except AuthenticationError:
        return
    assert len(new.public_key) <= 1_024


@pytest.mark.full  # starts a process
def test_a_node_without_ceremonies_does_not_import_the_library():
    code = "import sys, tocsin.node, tocsin.cli; sys.exit('fido2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
