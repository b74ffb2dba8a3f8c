"""The history of incidents: which there were, and in which an entity was."""

from tocsin.knowledge.history.incidents import (
    incidents_about,
    incidents_numbered,
    incidents_within,
)
from tocsin.knowledge.history.sightings import sightings

__all__ = ["incidents_about", "incidents_numbered", "incidents_within", "sightings"]
