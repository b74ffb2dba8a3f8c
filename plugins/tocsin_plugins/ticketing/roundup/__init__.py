"""Roundup, from version 2 on."""

from __future__ import annotations

from tocsin_plugins.ticketing.roundup.tracker import Roundup

__all__ = ["Roundup"]
