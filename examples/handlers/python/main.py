#!/usr/bin/env python3
"""An example plugin: three job types, each with another kind of handler."""

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, Literal

import holdfast

try:
    from opentelemetry import trace
except ImportError:
    trace = None


def span(name: str):
    """A span below the attempt's, if OpenTelemetry is installed."""
    return trace.get_tracer("example").start_as_current_span(name) if trace else nullcontext()


@dataclass
class Echo:
    text: str


@holdfast.handler("PY_ECHO", description="Returns its text.")
def echo(job: holdfast.Job[Echo]):
    with span("echo"):
        job.log.info("echo", extra={"text": job.payload.text})
        return {"text": job.payload.text, "attempt": job.attempt}


@dataclass
class Count:
    to: Annotated[int, {"minimum": 1}]
    stepSeconds: Annotated[float, {"minimum": 0, "maximum": 60}] = 1


@holdfast.handler("PY_COUNT", description="Counts step by step, and continues after an interruption.", timeout=600)
async def count(job: holdfast.Job[Count]):
    """A coroutine is canceled where it awaits when the attempt must stop."""
    begun_at = job.resume(default=0)
    for n in range(begun_at + 1, job.payload.to + 1):
        await asyncio.sleep(job.payload.stepSeconds)
        job.checkpoint(n)
        job.progress({"counted": n, "of": job.payload.to})
    return {"begunAt": begun_at}


@dataclass
class Fail:
    how: Literal["error", "permanent", "retry_after", "snooze", "cancel", "slow"]
    seconds: Annotated[float, {"minimum": 0}] = 1


@holdfast.handler(
    "PY_FAIL",
    description="Fails in the way that its payload names.",
    timeout=5,
    max_attempts=3,
    retry=holdfast.fixed_backoff(0.5),
)
def fail(job: holdfast.Job[Fail]):
    match job.payload.how:
        case "permanent":
            raise holdfast.Permanent("no such printer", code="no_such_printer")
        case "retry_after":
            raise holdfast.RetryAfter(job.payload.seconds, "the printer is busy", code="busy")
        case "snooze":
            # Only once: a snooze charges no attempt, so it could repeat without end.
            if not job.resume(default=False):
                job.checkpoint(True)
                raise holdfast.Snooze(job.payload.seconds)
            return "slept well"
        case "cancel":
            raise holdfast.Cancel("no longer needed")
        case "slow":
            # A function checks whether it must stop.
            while not job.wait(0.1):
                pass
            job.raise_if_canceled()
    raise RuntimeError("out of paper")


if __name__ == "__main__":
    holdfast.serve(echo, count, fail, version="1.0", concurrency=20)
