"""Sample events, which Tocsin sends to test a destination."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from tocsin.clock import Clock, isoformat
from tocsin.delivery.destinations.channels import ChannelFactory
from tocsin.delivery.destinations.lifecycle import DestinationSpec
from tocsin.delivery.destinations.preview import Preview, build_preview
from tocsin.delivery.destinations.repository import Destination
from tocsin.delivery.queue.states import ClaimedDelivery
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.sending.attempts import AttemptRunner
from tocsin.errors import OperatorError, PluginFailure, Refused
from tocsin.identifiers import new_id
from tocsin.model import (
    Confidence,
    Event,
    EventType,
    IncidentStatus,
    Json,
    Persona,
    Report,
    Severity,
    Statement,
    Verdict,
    Window,
)
from tocsin.reports import to_json

PATIENCE = timedelta(seconds=25)
"""Time limit of a test."""
_TITLE = "Test from Tocsin: nothing happened, no action needed"
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResult:
    """Result of sending a sample event."""

    event_id: str
    outcome: str
    """Outcome as in the attempt log."""
    duration: timedelta
    status: int | None = None
    reason: str | None = None
    response: bytes = b""
    remote_id: str | None = None
    remote_url: str | None = None


class SampleSender:
    """Sends sample events, or previews events.

    Each sample is sent once, no matter which state the destination is in. Samples are not stored.
    """

    def __init__(
        self, channels: ChannelFactory, renderer: Renderer, clock: Clock, public_url: str
    ) -> None:
        self._channels = channels
        self._renderer = renderer
        self._clock = clock
        self._public_url = public_url

    async def send(
        self, destination: Destination | DestinationSpec, event_type: EventType
    ) -> SampleResult:
        """Send a sample through a temporary channel, and return the result."""
        started = self._clock.now()
        event = build_sample(event_type, self._public_url, started)
        outcome, reason = "later", f"no response within {PATIENCE.total_seconds():g} seconds"
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                return await self._send(destination, event)
        except TimeoutError:
            pass
        except (OperatorError, Refused) as error:
            outcome, reason = "misconfigured", str(error)
        except PluginFailure as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is reported
            _log.exception("channel could not be created", destination=destination.name)
            outcome, reason = "failed", f"{type(error).__name__}: {error}"
        duration = self._clock.now() - started
        return SampleResult(event_id=event.id, outcome=outcome, duration=duration, reason=reason)

    def preview(self, destination: Destination, event: Event) -> Preview:
        """Render an event with the destination's templates, without sending it."""
        return build_preview(self._channels, self._renderer, destination, event)

    async def _send(self, destination: Destination | DestinationSpec, event: Event) -> SampleResult:
        live = await self._channels.make(destination)
        try:
            attempt = await AttemptRunner(live.plugin, self._renderer).make(_claim_sample(event))
        finally:
            await live.close()
        return SampleResult(
            event_id=event.id,
            outcome=attempt.outcome,
            duration=attempt.ended_at - attempt.started_at,
            status=attempt.status,
            reason=attempt.reason,
            response=attempt.response,
            remote_id=attempt.remote_id,
            remote_url=attempt.remote_url,
        )


def _claim_sample(event: Event) -> ClaimedDelivery:
    return ClaimedDelivery(
        id=new_id("dlv"),
        event=event,
        attempt=1,
        step=1,
        remote_id=None,
        lease="",
        leased_until=event.timestamp + PATIENCE,
    )


def build_sample(event_type: EventType, public_url: str, now: datetime) -> Event:
    """Return an event of this type that is clearly marked as a test."""
    kind, identifier = _SUBJECTS[event_type]
    data = _SAMPLES[event_type]()
    data["url"] = f"{public_url}/{kind}s/{identifier}"
    context = _alert_context(data, now) if kind == "incident" else _scheduled(data, now)
    context["epoch"] = None  # a test event is not stored
    return Event(
        id=new_id("evt"),
        event_type=event_type,
        timestamp=now,
        data=data,
        subject=f"{'session' if kind == 'investigation' else kind}:{identifier}",
        context=context,
    )


def _alert() -> dict[str, Json]:
    return {
        "incident_number": 0,
        "title": _TITLE,
        "severity": Severity.INFORMATIONAL.value,
        "status": IncidentStatus.NEW.value,
        "provider": "test",
    }


def _run() -> dict[str, Json]:
    return {"session_id": "test", "schedule_id": "test", "schedule_name": _TITLE}


def _completed() -> dict[str, Json]:
    counts = {"risk_score": 0.0, "entity_count": 0, "finding_count": 0}
    return {**_run(), "title": _TITLE, **counts}


def _failed() -> dict[str, Json]:
    return {**_run(), "error": _TITLE, "consecutive_failures": 1}


def _disabled() -> dict[str, Json]:
    return {
        "schedule_id": "test",
        "schedule_name": _TITLE,
        "reason": "consecutive_failures",
        "consecutive_failures": 5,
        "last_error": _TITLE,
    }


def _alert_context(data: dict[str, Json], now: datetime) -> dict[str, Json]:
    """Return the context as the producer of an alert does."""
    return {"incident": _incident(data, now), "marking": {"tlp": "amber", "pap": "amber"}}


def _incident(data: dict[str, Json], now: datetime) -> dict[str, Json]:
    """Return the incident context as the producer of an alert does."""
    moments = dict.fromkeys(("occurred_at", "created_at", "updated_at"), isoformat(now))
    shown = {name: data[name] for name in ("title", "severity", "status", "provider", "url")}
    return {
        **shown,
        **moments,
        "number": 0,
        "external_id": "test",
        "external_number": None,
        "description": _TITLE,
        "raw_severity": None,
        "severity_assumed": False,
        "raw_status": None,
        "merged_into": None,
        "source_url": None,
        "alert_count": 0,
        "techniques": [],
        "tactics": [],
        "entities": [],
    }


def _scheduled(data: dict[str, Json], now: datetime) -> dict[str, Json]:
    """Return the context as the producer of an event about a schedule does."""
    context: dict[str, Json] = {"schedule": _schedule(data, now)}
    if "session_id" in data:
        context["session"] = _session(data, now)
    if "risk_score" in data:
        context["report"] = to_json(_report(now))
    return context


def _schedule(data: dict[str, Json], now: datetime) -> dict[str, Json]:
    is_disabled = "reason" in data
    return {
        **dict.fromkeys(("last_run_at", "created_at", "updated_at"), isoformat(now)),
        **dict.fromkeys(("provider", "interval", "jitter", "starts_at", "ends_at")),
        "id": "test",
        "name": _TITLE,
        "managed_by": "api",
        "query": _TITLE,
        "persona": Persona.ANALYST.value,
        "cron": "@daily",
        "timezone": "UTC",
        "timeout": "PT10M",
        "misfire_grace": "PT1H",
        "overlap": "skip",
        "failure_limit": None,
        "tags": ["test"],
        "status": "disabled" if is_disabled else "active",
        "disabled_reason": data.get("reason"),
        "consecutive_failures": data.get("consecutive_failures", 0),
        "last_status": "completed" if "risk_score" in data else "failed",
        "last_error": data.get("error") or data.get("last_error"),
        "next_run_at": None if is_disabled else isoformat(now + timedelta(days=1)),
        "revision": 1,
        "created_by": "test",
        "url": data["url"],
    }


def _session(data: dict[str, Json], now: datetime) -> dict[str, Json]:
    is_complete = "risk_score" in data
    names = ("title", "error", "risk_score", "entity_count", "finding_count")
    return {
        **{name: data.get(name) for name in names},
        **dict.fromkeys(("created_at", "updated_at", "completed_at"), isoformat(now)),
        "id": "test",
        "status": "completed" if is_complete else "failed",
        "query": _TITLE,
        "persona": Persona.ANALYST.value,
        "provider": None,
        "schedule_id": "test",
        "run": 1,
        "progress": {"phase": "report" if is_complete else "gather", "steps": 1, "asked": 1},
        "verdict": Verdict.INCONCLUSIVE.value if is_complete else None,
        "confidence": Confidence.LOW.value if is_complete else None,
        "created_by": "schedules",
        "url": data["url"],
    }


def _report(now: datetime) -> Report:
    return Report(
        title=_TITLE,
        query=_TITLE,
        persona=Persona.ANALYST,
        window=Window(now - timedelta(days=1), now),
        verdict=Verdict.INCONCLUSIVE,
        confidence=Confidence.LOW,
        risk_score=0.0,
        summary=(Statement(_TITLE, ("step:1",)),),
    )


_SAMPLES: dict[EventType, Callable[[], dict[str, Json]]] = {
    EventType.INCIDENT_ALERT: _alert,
    EventType.INVESTIGATION_COMPLETED: _completed,
    EventType.INVESTIGATION_FAILED: _failed,
    EventType.SCHEDULE_DISABLED: _disabled,
}
_SUBJECTS = {
    EventType.INCIDENT_ALERT: ("incident", "0"),
    EventType.INVESTIGATION_COMPLETED: ("investigation", "test"),
    EventType.INVESTIGATION_FAILED: ("schedule", "test"),
    EventType.SCHEDULE_DISABLED: ("schedule", "test"),
}
