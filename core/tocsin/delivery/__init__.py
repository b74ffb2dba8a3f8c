"""Delivery: routing of events to destinations, and sending them there."""

from tocsin.delivery.destination_services import DestinationServices
from tocsin.delivery.destinations.catalog import ChannelOffer
from tocsin.delivery.destinations.channels import ChannelFactory
from tocsin.delivery.destinations.lifecycle import (
    DestinationSpec,
    create_destination,
    delete_destination,
    enable_due_destinations,
    resume_destination,
    update_destination,
)
from tocsin.delivery.destinations.preview import Preview
from tocsin.delivery.destinations.reconciliation import (
    apply_destinations,
    list_configured_destinations,
    plan_destinations,
)
from tocsin.delivery.destinations.repository import (
    Destination,
    DestinationState,
    StopReason,
    count_waiting,
    list_destinations,
    load_destination,
    load_destinations,
)
from tocsin.delivery.destinations.samples import SampleResult, build_sample
from tocsin.delivery.destinations.validation import InvalidDestinationError
from tocsin.delivery.history.delivery_status import SHOWN_STATE, STATUS_COLUMNS, describe_status
from tocsin.delivery.history.filters import (
    DeliveryFilter,
    NoSuchDestinationError,
    require_destination,
)
from tocsin.delivery.history.replay_runner import (
    NoSuchDeliveryError,
    NotReplayableError,
    ReplayRunner,
    replay_batch,
    replay_delivery,
)
from tocsin.delivery.history.replays import (
    ReplayExtent,
    ReplayState,
    cancel_replay,
    create_replay,
    list_replays,
    load_replay,
    measure_replay,
)
from tocsin.delivery.history.repository import (
    StoredAttemptLog,
    list_attempts,
    list_deliveries,
    load_delivery,
    load_event,
    summarize_attempt,
)
from tocsin.delivery.history.retention import remove_events, remove_month, remove_strays
from tocsin.delivery.metrics.gauges import DeliveryBacklog, read_backlogs
from tocsin.delivery.metrics.meters import DeliveryMetrics
from tocsin.delivery.queue.queue import HEARTBEAT, DeliveryQueue
from tocsin.delivery.queue.requeue import (
    expire_deliveries,
    requeue_destination,
    requeue_on_hold,
    requeue_pending,
)
from tocsin.delivery.queue.restored import hold_pending_deliveries, release_restored_deliveries
from tocsin.delivery.queue.states import (
    DEAD,
    DELIVERED,
    ON_HOLD,
    PENDING,
    REPLAYABLE_STATES,
    DeliveryState,
    is_stored_as,
)
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing.assignment import ShardAssignment
from tocsin.delivery.routing.hold import (
    count_missed_events,
    find_routing_hold,
    load_applied_from,
    record_application,
    release_missed_events,
    was_missed,
)
from tocsin.delivery.routing.reroute import (
    ReroutedEvents,
    count_unmatched_events,
    reroute_events,
)
from tocsin.delivery.routing.router import Router
from tocsin.delivery.routing.suppression_records import (
    NewSuppression,
    SuppressionNameTakenError,
    create_suppression,
    end_suppression,
    list_suppressions,
    load_suppression,
)
from tocsin.delivery.sending.worker_pool import WorkerPool
from tocsin.delivery.statuses.mismatches import (
    list_mismatches,
    load_remote_objects,
    summarize_statuses,
)

__all__ = [
    "DEAD",
    "DELIVERED",
    "HEARTBEAT",
    "ON_HOLD",
    "PENDING",
    "REPLAYABLE_STATES",
    "SHOWN_STATE",
    "STATUS_COLUMNS",
    "ChannelFactory",
    "ChannelOffer",
    "DeliveryBacklog",
    "DeliveryFilter",
    "DeliveryMetrics",
    "DeliveryQueue",
    "DeliveryState",
    "Destination",
    "DestinationServices",
    "DestinationSpec",
    "DestinationState",
    "InvalidDestinationError",
    "NewSuppression",
    "NoSuchDeliveryError",
    "NoSuchDestinationError",
    "NotReplayableError",
    "Preview",
    "Renderer",
    "ReplayExtent",
    "ReplayRunner",
    "ReplayState",
    "ReroutedEvents",
    "Router",
    "SampleResult",
    "ShardAssignment",
    "StopReason",
    "StoredAttemptLog",
    "SuppressionNameTakenError",
    "WorkerPool",
    "apply_destinations",
    "build_sample",
    "cancel_replay",
    "count_missed_events",
    "count_unmatched_events",
    "count_waiting",
    "create_destination",
    "create_replay",
    "create_suppression",
    "delete_destination",
    "describe_status",
    "enable_due_destinations",
    "end_suppression",
    "expire_deliveries",
    "find_routing_hold",
    "hold_pending_deliveries",
    "is_stored_as",
    "list_attempts",
    "list_configured_destinations",
    "list_deliveries",
    "list_destinations",
    "list_mismatches",
    "list_replays",
    "list_suppressions",
    "load_applied_from",
    "load_delivery",
    "load_destination",
    "load_destinations",
    "load_event",
    "load_remote_objects",
    "load_replay",
    "load_suppression",
    "measure_replay",
    "plan_destinations",
    "read_backlogs",
    "record_application",
    "release_missed_events",
    "release_restored_deliveries",
    "remove_events",
    "remove_month",
    "remove_strays",
    "replay_batch",
    "replay_delivery",
    "requeue_destination",
    "requeue_on_hold",
    "requeue_pending",
    "require_destination",
    "reroute_events",
    "resume_destination",
    "summarize_attempt",
    "summarize_statuses",
    "update_destination",
    "was_missed",
]
