from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode

import pytest

from tocsin.credentials import Vault
from tocsin.erasure import Eraser, ErasureRequest
from tocsin.model import Entity, EntityKind

NAME = "j.d\u00f6e"
PERSON = Entity(EntityKind.USER, NAME)


@pytest.fixture
def vault() -> Vault:
    return Vault(urlsafe_b64encode(secrets.token_bytes(32)).decode(), source="the test")


@pytest.fixture
def eraser(database, vault, clock, tmp_path) -> Eraser:
    return Eraser(database, vault, clock, tmp_path, tmp_path / "archive")


@pytest.fixture
def request_() -> ErasureRequest:
    return ErasureRequest(entity=PERSON, by="ana", address="local")
