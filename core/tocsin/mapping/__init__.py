"""Mapping of foreign JSON to incidents by templates."""

from tocsin.mapping.template import MappingTemplate

__all__ = ["MappingTemplate"]
