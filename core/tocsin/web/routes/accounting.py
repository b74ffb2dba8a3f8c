"""Endpoints for the trace of an incident and the audit of a period."""

from __future__ import annotations

from sqlalchemy import Connection

from tocsin import accounting
from tocsin.credentials import ConsoleRole
from tocsin.incidents import find_removed
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.record_problems import INCIDENT_NOT_FOUND, INCIDENT_REMOVED
from tocsin.web.routes.incidents import parse_number
from tocsin.web.schemas.accounting import Proof, ProofQuery
from tocsin.web.schemas.incident_trace import Trace


def get_incident_trace(connection: Connection, call: RequestContext) -> Response:
    """Return the complete history of an incident, from the read to each delivery attempt."""
    number = parse_number(call.path["number"])
    found = accounting.trace_incident(connection, number) if number else None
    if found is None:
        removed = find_removed(connection, number) if number else None
        if removed is not None:
            raise INCIDENT_REMOVED.error(**removed.describe())
        raise INCIDENT_NOT_FOUND.error()
    return Response(found)


def get_proof(connection: Connection, call: RequestContext) -> Response:
    """Return the audit of a period: reads, deliveries and anomalies."""
    query: ProofQuery = call.query
    now = call.services.clock.now()
    until = min(query.until or now, now)
    period = accounting.Period(until - query.timespan, until)
    return Response(accounting.report_period(connection, period, now))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/admin/trace/{number}",
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Trace one incident from the read to each delivery attempt",
        handler=get_incident_trace,
        response=Trace,
        problems=(INCIDENT_NOT_FOUND, INCIDENT_REMOVED),
    ),
    Endpoint(
        method="GET",
        path="/api/admin/proof",
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Audit a period: reads, deliveries and anomalies",
        handler=get_proof,
        may_lag=True,
        query=ProofQuery,
        response=Proof,
    ),
)
