"""Delivery: which destinations an event concerns, and bringing it there."""

from tocsin.delivery.accounts import STATES, list_attempts, list_deliveries, replay
from tocsin.delivery.queue import void_leases
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing import Route
from tocsin.delivery.worker import Router, Worker

__all__ = [
    "STATES",
    "Renderer",
    "Route",
    "Router",
    "Worker",
    "list_attempts",
    "list_deliveries",
    "replay",
    "void_leases",
]
