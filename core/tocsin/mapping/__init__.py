"""Making incidents of JSON that comes in a shape of its sender's, by a template that says how."""

from tocsin.mapping.template import MappingTemplate

__all__ = ["MappingTemplate"]
