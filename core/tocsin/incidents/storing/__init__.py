"""Keeping incidents: versions folded, bounds kept, alerts judged, one transaction a page."""
