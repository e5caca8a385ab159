from types import SimpleNamespace


class TraceContextTextMapPropagator:
    def extract(self, carrier):
        _, trace_id, span_id, _ = carrier["traceparent"].split("-")
        return SimpleNamespace(is_valid=True, trace_id=int(trace_id, 16), span_id=int(span_id, 16))
