"""What an app has to be allowed on a workspace."""

from __future__ import annotations

REQUIRED_ACTIONS = (
    "Microsoft.SecurityInsights/incidents/read",
    "Microsoft.SecurityInsights/incidents/write",
    "Microsoft.SecurityInsights/incidents/comments/read",
    "Microsoft.SecurityInsights/incidents/comments/write",
)
