"""Routing of events to destinations."""
