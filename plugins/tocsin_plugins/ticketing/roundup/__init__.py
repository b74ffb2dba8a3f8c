"""Roundup, version 2 or later."""

from __future__ import annotations

from tocsin_plugins.ticketing.roundup.tracker import Roundup

__all__ = ["Roundup"]
