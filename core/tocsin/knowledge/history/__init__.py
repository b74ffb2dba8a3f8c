"""The history of incidents: which there were, and in which an entity was."""

from tocsin.knowledge.history.incidents import find_incidents, list_incidents_within, load_incidents
from tocsin.knowledge.history.sightings import find_sightings

__all__ = ["find_incidents", "find_sightings", "list_incidents_within", "load_incidents"]
