"""The running API, for every test beside this file."""

from __future__ import annotations

from running_api import api

__all__ = ["api"]
