"""Incident storage: validation, version merging, alerts, one transaction per page."""
