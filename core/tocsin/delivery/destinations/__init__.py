"""Destinations: storage, life cycle, validation, reconciliation with a file, and tests."""
