"""Observables: entities in text and records, and the internal and well-known ones among them."""

from tocsin.observables.defanged import defang, refang
from tocsin.observables.environment import (
    Environment,
    EnvironmentSettings,
    replace_environment,
)
from tocsin.observables.patterns import EntityPattern
from tocsin.observables.records import find_in_record
from tocsin.observables.results import Observables
from tocsin.observables.text import find_observables

__all__ = [
    "EntityPattern",
    "Environment",
    "EnvironmentSettings",
    "Observables",
    "defang",
    "find_in_record",
    "find_observables",
    "refang",
    "replace_environment",
]
