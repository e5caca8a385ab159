from types import SimpleNamespace

from opentelemetry import context

provider = None


def set_tracer_provider(made):
    global provider
    provider = made


def get_current_span():
    found = context.current.get() or SimpleNamespace(is_valid=False)
    return SimpleNamespace(get_span_context=lambda: found)
