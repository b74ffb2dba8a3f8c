"""What an app has to be allowed on a workspace."""

from __future__ import annotations

READ_INCIDENTS = "Microsoft.SecurityInsights/incidents/read"
QUERY_LOGS = "Microsoft.OperationalInsights/workspaces/query/read"
WRITE_COMMENTS = "Microsoft.SecurityInsights/incidents/comments/write"
WRITE_INCIDENTS = "Microsoft.SecurityInsights/incidents/write"
