"""Incidents: reading them from providers, keeping them, and accounting for what was read."""

from tocsin.incidents.accounts import list_coverage, list_quarantine
from tocsin.incidents.sync import ProviderSync

__all__ = ["ProviderSync", "list_coverage", "list_quarantine"]
