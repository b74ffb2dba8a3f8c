"""Request Tracker (RT), from version 5 on."""

from __future__ import annotations

from tocsin_plugins.ticketing.request_tracker.tracker import RequestTracker

__all__ = ["RequestTracker"]
