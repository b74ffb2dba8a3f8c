"""The HTTP API."""

from tocsin.web.app import make_app
from tocsin.web.door import Door, open_door
from tocsin.web.server import Runner

__all__ = ["Door", "Runner", "make_app", "open_door"]
