"""Zendesk Support."""

from __future__ import annotations

from tocsin_plugins.ticketing.zendesk.tracker import Zendesk

__all__ = ["Zendesk"]
