"""Request Tracker (RT), version 5 or later."""

from __future__ import annotations

from tocsin_plugins.ticketing.request_tracker.tracker import RequestTracker

__all__ = ["RequestTracker"]
