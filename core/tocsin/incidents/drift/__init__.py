"""Vendor drift: stored shapes of records, their comparison with contracts, and the warnings."""

from tocsin.incidents.drift.metrics import DriftGauges
from tocsin.incidents.drift.repository import load_drift
from tocsin.incidents.drift.watch import DriftWatch

__all__ = ["DriftGauges", "DriftWatch", "load_drift"]
