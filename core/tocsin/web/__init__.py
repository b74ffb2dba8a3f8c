"""The HTTP API."""

from tocsin.web.app import make_app
from tocsin.web.calls import Services

__all__ = ["Services", "make_app"]
