"""Incident history: stored incidents, and the sightings of entities in them."""

from tocsin.knowledge.history.incidents import find_incidents, list_incidents_within, load_incidents
from tocsin.knowledge.history.related import RelatedIncident, find_related_incidents
from tocsin.knowledge.history.sightings import find_sightings

__all__ = [
    "RelatedIncident",
    "find_incidents",
    "find_related_incidents",
    "find_sightings",
    "list_incidents_within",
    "load_incidents",
]
