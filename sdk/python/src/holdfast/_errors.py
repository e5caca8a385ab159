"""Exceptions by which a handler says how its attempt ends."""

from __future__ import annotations

import enum
from datetime import timedelta

from ._duration import Duration, millis


class Reason(str, enum.Enum):
    """Why an attempt must stop."""

    CANCELED = "canceled"
    """A client canceled the job."""
    TIMEOUT = "timeout"
    """The attempt timed out."""
    LEASE_LOST = "lease_lost"
    """The orchestrator cannot prove that it still owns the job, or the connection to it
    is lost. Change nothing more: another attempt may start at any moment."""
    SHUTDOWN = "shutdown"
    """The orchestrator shuts down and releases the job. The next attempt continues from
    the last checkpoint."""

    def __str__(self) -> str:
        return self.value


class Stopped(Exception):
    """Raised by Job.raise_if_canceled when the attempt must stop. Do not catch it."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"stopped: {reason}")
        self.reason = reason


class Failure(Exception):
    """Fails the attempt, and says what happens next.

    code is a short, stable name, which is stored with the attempt. permanent means
    that no attempt can succeed: the job is dead-lettered. retry_after replaces the
    retry policy's wait before the next attempt; a number is in seconds.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        permanent: bool = False,
        retry_after: Duration | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.permanent = permanent
        self.retry_after_ms = None if retry_after is None else millis(retry_after)


class Permanent(Failure):
    """No attempt can succeed: the job is dead-lettered."""

    def __init__(self, message: str = "", *, code: str = "") -> None:
        super().__init__(message, code=code, permanent=True)


class CheckpointTooLarge(Permanent, ValueError):
    """A checkpoint is larger than the orchestrator takes. If you do not catch it, the
    job is dead-lettered: the next attempt would get no further."""


class FollowUpsTooLarge(Permanent, ValueError):
    """An attempt submits more jobs, or larger ones, than the orchestrator takes. If you do
    not catch it, the job is dead-lettered."""


class RetryAfter(Failure):
    """Fails the attempt. The job waits this long before the next attempt, if one is
    left, whatever the retry policy says. A number is in seconds."""

    def __init__(self, delay: Duration, message: str = "", *, code: str = "") -> None:
        super().__init__(message, code=code, retry_after=delay)


class Snooze(Exception):
    """Ends the attempt without charging it. The job runs again after the delay. A
    number is in seconds."""

    def __init__(self, delay: Duration) -> None:
        self.retry_after_ms = millis(delay)
        super().__init__(f"snooze for {timedelta(milliseconds=self.retry_after_ms)}")


class Cancel(Exception):
    """Cancels the job from within its handler. The reason goes to the log."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "canceled by the handler")
        self.reason = reason
