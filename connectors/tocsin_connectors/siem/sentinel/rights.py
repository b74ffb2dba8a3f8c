"""What an app has to be allowed on a workspace."""

from __future__ import annotations

READ = "Microsoft.SecurityInsights/incidents/read"
QUERY = "Microsoft.OperationalInsights/workspaces/query/read"
COMMENT = "Microsoft.SecurityInsights/incidents/comments/write"
CHANGE = "Microsoft.SecurityInsights/incidents/write"
