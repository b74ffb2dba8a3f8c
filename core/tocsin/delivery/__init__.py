"""Delivery: which destinations an event concerns, and bringing it there."""

from tocsin.delivery.destinations.applying import (
    apply_destinations,
    plan_destinations,
    written_in,
)
from tocsin.delivery.destinations.changing import (
    Written,
    amend,
    create,
    delete,
    resume,
)
from tocsin.delivery.destinations.channels import Channels
from tocsin.delivery.destinations.listing import count_waiting, list_destinations
from tocsin.delivery.destinations.offering import Offer
from tocsin.delivery.destinations.previewing import Preview
from tocsin.delivery.destinations.records import (
    Destination,
    Reason,
    State,
    load_destination,
    load_destinations,
)
from tocsin.delivery.destinations.registering import Registrar, WrongDestinationError
from tocsin.delivery.destinations.sampling import Samples, Sent
from tocsin.delivery.history.answers import StoredAttempts
from tocsin.delivery.history.archive import Archive
from tocsin.delivery.history.filters import DeliveryState, Filter, Resting
from tocsin.delivery.history.names import NoSuchDestinationError
from tocsin.delivery.history.reads import (
    list_attempts,
    list_deliveries,
    load_delivery,
    load_event,
)
from tocsin.delivery.history.replaying import (
    NoSuchDeliveryError,
    NotReplayableError,
    Replayer,
    replay_batch,
    replay_delivery,
)
from tocsin.delivery.history.replays import (
    Extent,
    ReplayState,
    cancel_replay,
    create_replay,
    list_replays,
    load_replay,
    measure_replay,
)
from tocsin.delivery.history.retention import Retention
from tocsin.delivery.measuring.meters import DeliveryMetrics
from tocsin.delivery.queue.requeueing import bury, unpark_all
from tocsin.delivery.queue.sql import SqlQueue
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing.router import Router
from tocsin.delivery.sending.fleet import Fleet

__all__ = [
    "Archive",
    "Channels",
    "DeliveryMetrics",
    "DeliveryState",
    "Destination",
    "Extent",
    "Filter",
    "Fleet",
    "NoSuchDeliveryError",
    "NoSuchDestinationError",
    "NotReplayableError",
    "Offer",
    "Preview",
    "Reason",
    "Registrar",
    "Renderer",
    "ReplayState",
    "Replayer",
    "Resting",
    "Retention",
    "Router",
    "Samples",
    "Sent",
    "SqlQueue",
    "State",
    "StoredAttempts",
    "Written",
    "WrongDestinationError",
    "amend",
    "apply_destinations",
    "bury",
    "cancel_replay",
    "count_waiting",
    "create",
    "create_replay",
    "delete",
    "list_attempts",
    "list_deliveries",
    "list_destinations",
    "list_replays",
    "load_delivery",
    "load_destination",
    "load_destinations",
    "load_event",
    "load_replay",
    "measure_replay",
    "plan_destinations",
    "replay_batch",
    "replay_delivery",
    "resume",
    "unpark_all",
    "written_in",
]
