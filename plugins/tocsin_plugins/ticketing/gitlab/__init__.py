"""GitLab, hosted or self-managed."""

from __future__ import annotations

from tocsin_plugins.ticketing.gitlab.tracker import GitLab

__all__ = ["GitLab"]
