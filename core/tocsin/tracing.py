"""Tracing with OpenTelemetry, an optional dependency that is imported only while tracing is on.

Spans have no content: names of providers and destinations, identifiers, counts and outcomes.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import copy_context
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeVar

import structlog

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OtelSpan

S = TypeVar("S")
T = TypeVar("T")
Attributes = Mapping[str, str | int]
Kind = Literal["internal", "server", "client"]
TRACEPARENT = "traceparent"
"""The header of W3C Trace Context, and the member of an event's context."""
_FLUSH_SECONDS = 5
_LONGEST = 200
_log = structlog.get_logger()


def find_missing() -> str | None:
    """Return how to install what tracing needs, None if it is installed."""
    packages = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    try:
        is_missing = any(find_spec(package) is None for package in packages)
    except ModuleNotFoundError:  # of a parent package
        is_missing = True
    return "install it with `pip install 'tocsin[otel]'`" if is_missing else None


class Span:
    """One span; the base class is that of tracing that is off."""

    def set(self, attributes: Attributes) -> None:
        """Set attributes."""


class _RecordedSpan(Span):
    def __init__(self, span: OtelSpan) -> None:
        self._span = span

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes(_clean(attributes))


_OFF: AbstractContextManager[Span] = nullcontext(Span())


class _Recorder:
    """The interface to OpenTelemetry."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._tracer = provider.get_tracer("tocsin")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span(
        self, name: str, attributes: Attributes, kind: Kind, parent: str | None
    ) -> Iterator[Span]:
        """Record a span; of an exception, only the class, since its text may be private."""
        with self._tracer.start_as_current_span(
            name,
            context=self._read_parent(parent),
            kind=self._trace.SpanKind[kind.upper()],
            attributes=_clean(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield _RecordedSpan(span)
            except BaseException as error:
                span.set_status(self._trace.StatusCode.ERROR, type(error).__name__)
                raise

    def record(
        self, name: str, attributes: Attributes, parent: str | None, started_ns: int
    ) -> None:
        """Record a span that ends now."""
        context = self._read_parent(parent)
        span = self._tracer.start_span(
            name, context, attributes=_clean(attributes), start_time=started_ns
        )
        span.end()

    def note(self, name: str, attributes: Attributes) -> None:
        """Add an event to the current span."""
        self._trace.get_current_span().add_event(name, _clean(attributes))

    def write_headers(self) -> dict[str, str]:
        """Return the header that names the current span, if there is one."""
        headers: dict[str, str] = {}
        self._propagator.inject(headers)
        return {TRACEPARENT: headers[TRACEPARENT]} if TRACEPARENT in headers else {}

    def _read_parent(self, parent: str | None) -> Context | None:
        """Return the context of a parent; None for the current one, as for an invalid parent."""
        if parent is None:
            return None
        return self._propagator.extract({TRACEPARENT: parent})


_recorder: _Recorder | None = None


def is_on() -> bool:
    """Return whether spans are recorded."""
    return _recorder is not None


def span(
    name: str, attributes: Attributes, *, kind: Kind = "internal", parent: str | None = None
) -> AbstractContextManager[Span]:
    """Record a span, a child of `parent`, a `traceparent`, or else of the current one."""
    if _recorder is None:
        return _OFF
    return _recorder.span(name, attributes, kind, parent)


def record_span(name: str, attributes: Attributes, *, parent: str | None, started_ns: int) -> None:
    """Record a span that started at `started_ns`, of `time.time_ns`, and ends now."""
    if _recorder is not None:
        _recorder.record(name, attributes, parent, started_ns)


def note_event(name: str, attributes: Attributes) -> None:
    """Add an event to the current span, whose number of events OpenTelemetry limits."""
    if _recorder is not None:
        _recorder.note(name, attributes)


def build_headers() -> dict[str, str]:
    """Return the headers by which a receiver continues the trace; none if there is no trace."""
    return {} if _recorder is None else _recorder.write_headers()


def carry_context(operation: Callable[[S], T]) -> Callable[[S], T]:
    """Return an operation that another thread runs as part of the current span."""
    if _recorder is None:
        return operation
    context = copy_context()
    return lambda given: context.run(operation, given)


def _clean(attributes: Attributes) -> dict[str, str | int]:
    return {
        name: value[:_LONGEST] if isinstance(value, str) else value
        for name, value in attributes.items()
    }


@asynccontextmanager
async def open_tracing(version: str, instance: str) -> AsyncIterator[None]:
    """Record and export spans until the end, as the variables `OTEL_*` say.

    Without OpenTelemetry, nothing is recorded, and the log says so.
    """
    global _recorder  # noqa: PLW0603 - one per process
    if (remedy := find_missing()) is not None:
        _log.error("tracing is off: OpenTelemetry is not installed", advice=remedy)
        yield
        return
    provider = await asyncio.to_thread(_make_provider, version, instance)
    _recorder = _Recorder(provider)
    _log.info("tracing is on", endpoint=describe_endpoint())
    try:
        yield
    finally:
        _recorder = None
        await _shut_down(provider)


def _make_provider(version: str, instance: str) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    own = {
        "service.name": "tocsin",
        "service.version": version,
        "service.instance.id": instance,
    }
    resource = Resource.create({}).merge(Resource(own)).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def describe_endpoint() -> str:
    """Return where spans are sent, without credentials."""
    given = (
        os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        or "http://localhost:4318"
    )
    return given.rpartition("@")[2].partition("?")[0]


async def _shut_down(provider: TracerProvider) -> None:
    """Send what is left, unless the collector is away."""
    closing = threading.Thread(target=provider.shutdown, daemon=True)  # not waited for at exit
    closing.start()
    await asyncio.to_thread(closing.join, _FLUSH_SECONDS)
    if closing.is_alive():
        _log.warning("spans not sent: the collector does not respond")
