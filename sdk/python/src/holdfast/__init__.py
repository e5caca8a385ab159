"""Holdfast handlers in Python.

A handler is a function that does one job type; a handler program serves one or
more of them to the orchestrator that launches it.

    import holdfast

    @holdfast.handler("ECHO")
    def echo(job: holdfast.Job):
        job.log.info("echo", extra={"text": job.payload["text"]})
        return {"text": job.payload["text"]}

    holdfast.serve(echo)

A function that returns ends the job. An exception is a failure that is tried
again by the job type's retry policy, unless it says otherwise: see Permanent,
RetryAfter, Snooze, Cancel and Failure.

An attempt that is to stop says so: Job.cancelled and Job.cancel_reason tell, and
a coroutine is canceled as asyncio does it. A handler that goes on regardless is
killed with its whole process.
"""

from ._errors import Cancel, CheckpointTooLarge, Failure, Permanent, Reason, RetryAfter, Snooze, Stopped
from ._handler import Handler, handler
from ._job import Job
from ._log import LogHandler
from ._retry import RetryPolicy, exponential_backoff, fixed_backoff, immediate_retry
from ._serve import serve

__all__ = [
    "Cancel",
    "CheckpointTooLarge",
    "Failure",
    "Handler",
    "Job",
    "LogHandler",
    "Permanent",
    "Reason",
    "RetryAfter",
    "RetryPolicy",
    "Snooze",
    "Stopped",
    "exponential_backoff",
    "fixed_backoff",
    "handler",
    "immediate_retry",
    "serve",
]
