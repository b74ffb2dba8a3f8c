"""Conformance of the DFIR-IRIS channel."""

from __future__ import annotations

from tocsin import Idempotency
from tocsin.testing.conformance import ObjectChannelConformance

from .simulator import IrisSimulator
from .suite import Suite


class TestIris(Suite, ObjectChannelConformance):
    idempotency = Idempotency.SEARCH
    permissions = IrisSimulator.permissions
