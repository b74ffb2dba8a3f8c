"""ServiceNow records."""

from tocsin_plugins.ticketing.servicenow.tracker import ServiceNow

__all__ = ["ServiceNow"]
