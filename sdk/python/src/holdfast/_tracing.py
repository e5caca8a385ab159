"""OpenTelemetry, if its packages are installed. Otherwise nothing is traced."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

try:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    trace = None

GATHER_MS = 500
"""How long spans are collected before they are sent. A killed process loses them."""

FLUSH_WITHIN = 1.0
"""How long, in seconds, sending the last spans may take."""

_EXPORTERS = {
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
}

_provider: Any = None


def set_up() -> None:
    """Sends this process's spans by OTLP, if OpenTelemetry's environment variables name a
    collector and the packages for it are installed."""
    global _provider
    get = os.environ.get
    endpoint = get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or get("OTEL_EXPORTER_OTLP_ENDPOINT")
    disabled = get("OTEL_SDK_DISABLED", "").lower() == "true" or get("OTEL_TRACES_EXPORTER") == "none"
    if trace is None or not endpoint or disabled:
        return
    protocol = get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if protocol not in _EXPORTERS:
        print(f"tracing: OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}; spans are sent by grpc or http/protobuf", file=sys.stderr)
        return
    try:
        from importlib import import_module

        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        exporter = import_module(_EXPORTERS[protocol]).OTLPSpanExporter()
    except ImportError:
        return
    _provider = TracerProvider()
    delay = None if get("OTEL_BSP_SCHEDULE_DELAY") else GATHER_MS
    _provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay))
    trace.set_tracer_provider(_provider)


def flush() -> None:
    """Sends the collected spans, and waits no longer than FLUSH_WITHIN."""
    if _provider is not None:
        sending = threading.Thread(target=_provider.force_flush, name="holdfast-spans", daemon=True)
        sending.start()
        sending.join(FLUSH_WITHIN)


def enter(traceparent: str, tracestate: str) -> None:
    """Makes the attempt's span the current one in this context, which belongs to the
    attempt."""
    if trace is not None and traceparent:
        carrier = {"traceparent": traceparent, "tracestate": tracestate}
        context.attach(TraceContextTextMapPropagator().extract(carrier))


def current_ids() -> dict[str, str]:
    """The ids of the current span, for a log record; empty if there is none."""
    if trace is None:
        return {}
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"}
