"""Endpoint for detections and the dispositions of their incidents."""

from __future__ import annotations

from sqlalchemy import Connection

from tocsin import incidents
from tocsin.credentials import Scope
from tocsin.web.context import Endpoint, RequestContext, Response
from tocsin.web.schemas.detections import DetectionList, DetectionQuery


def list_detections(connection: Connection, call: RequestContext) -> Response:
    """Return the detections with the most false positives, each with its dispositions."""
    query: DetectionQuery = call.query
    since = call.services.clock.now() - query.timespan
    found = incidents.rank_detections(connection, since, query.provider, query.limit)
    return Response(
        {
            "detections": [
                {
                    "provider": each.provider,
                    "rule": each.rule,
                    "title": each.title,
                    "incident_count": each.incident_count,
                    "dispositions": {str(name): n for name, n in each.dispositions.items()},
                    "false_positive_ratio": round(each.false_positive_ratio, 3),
                    "latest_incident": each.latest_incident,
                }
                for each in found
            ]
        }
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/incidents/detections",
        access=Scope.INCIDENTS_READ,
        summary="List detection rules by number of false positives",
        handler=list_detections,
        query=DetectionQuery,
        response=DetectionList,
    ),
)
