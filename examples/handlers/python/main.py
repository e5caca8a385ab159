#!/usr/bin/env python3
"""An example: three job types, as three kinds of handler."""

import asyncio
from contextlib import nullcontext

import holdfast

try:
    from opentelemetry import trace
except ImportError:
    trace = None


def span(name: str):
    """With OpenTelemetry's packages installed, a span of its own below that of its attempt."""
    return trace.get_tracer("example").start_as_current_span(name) if trace else nullcontext()


@holdfast.handler(
    "PY_ECHO",
    description="Answers with what it was given.",
    schema={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
)
def echo(job: holdfast.Job):
    with span("echo"):
        job.log.info("echo", extra={"text": job.payload["text"]})
        return {"text": job.payload["text"], "attempt": job.attempt}


@holdfast.handler(
    "PY_COUNT",
    description="Counts, a step at a time, and goes on where it was interrupted.",
    schema={
        "type": "object",
        "properties": {
            "to": {"type": "integer", "minimum": 1},
            "stepSeconds": {"type": "number", "minimum": 0, "maximum": 60},
        },
        "required": ["to"],
    },
    timeout=600,
)
async def count(job: holdfast.Job):
    """A coroutine is canceled, at what it awaits, when the attempt is to stop."""
    begun_at = job.resume(default=0)
    for n in range(begun_at + 1, job.payload["to"] + 1):
        await asyncio.sleep(job.payload.get("stepSeconds", 1))
        job.checkpoint(n)
        job.progress({"counted": n, "of": job.payload["to"]})
    return {"begunAt": begun_at}


@holdfast.handler(
    "PY_FAIL",
    description="Fails in the way it is asked to.",
    schema={
        "type": "object",
        "properties": {
            "how": {"enum": ["error", "permanent", "retry_after", "snooze", "cancel", "slow"]},
            "seconds": {"type": "number", "minimum": 0},
        },
        "required": ["how"],
    },
    timeout=5,
    max_attempts=3,
    retry=holdfast.fixed_backoff(0.5),
)
def fail(job: holdfast.Job):
    seconds = job.payload.get("seconds", 1)
    match job.payload["how"]:
        case "permanent":
            raise holdfast.Permanent("no such printer", code="no_such_printer")
        case "retry_after":
            raise holdfast.RetryAfter(seconds, "the printer is busy", code="busy")
        case "snooze":
            # By itself it would be for ever: attempts are not charged.
            if not job.resume(default=False):
                job.checkpoint(True)
                raise holdfast.Snooze(seconds)
            return "slept well"
        case "cancel":
            raise holdfast.Cancel("nobody needs it any more")
        case "slow":
            # An ordinary function looks whether it is to stop.
            while not job.wait(0.1):
                pass
            job.raise_if_cancelled()
    raise RuntimeError("out of paper")


if __name__ == "__main__":
    holdfast.serve(echo, count, fail, version="1.0", concurrency=20)
