"""GitLab, at gitlab.com or elsewhere."""

from __future__ import annotations

from tocsin_plugins.ticketing.gitlab.tracker import GitLab

__all__ = ["GitLab"]
