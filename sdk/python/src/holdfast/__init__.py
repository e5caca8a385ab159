"""The Holdfast SDK for Python.

A plugin is a program with one or more handlers; a handler runs the jobs of one
type. An orchestrator starts the plugin.

    from dataclasses import dataclass

    import holdfast

    @dataclass
    class Echo:
        text: str

    @holdfast.handler("ECHO")
    def echo(job: holdfast.Job[Echo]):
        job.log.info("echo", extra={"text": job.payload.text})
        return {"text": job.payload.text}

    holdfast.serve(echo)

The job succeeds when the function returns. When it raises an exception, the job is
retried by its type's retry policy. Permanent, RetryAfter, Snooze, Cancel and Failure
say otherwise.

An attempt that must stop is asked first: Job.canceled becomes true, and a coroutine
is canceled as asyncio does it. If the handler continues, its whole process is killed.
"""

from ._errors import Cancel, CheckpointTooLarge, Failure, FollowUpsTooLarge, Permanent, Reason, RetryAfter, Snooze, Stopped
from ._handler import Handler, handler
from ._job import Job
from ._log import LogHandler
from ._predecessor import Predecessor
from ._retry import RetryPolicy, exponential_backoff, fixed_backoff, immediate_retry
from ._serve import serve
from ._terms import Terms

__all__ = [
    "Cancel",
    "CheckpointTooLarge",
    "Failure",
    "FollowUpsTooLarge",
    "Handler",
    "Job",
    "LogHandler",
    "Permanent",
    "Predecessor",
    "Reason",
    "RetryAfter",
    "RetryPolicy",
    "Snooze",
    "Stopped",
    "Terms",
    "exponential_backoff",
    "fixed_backoff",
    "handler",
    "immediate_retry",
    "serve",
]
