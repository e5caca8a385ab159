"""What a handler raises to say more than that it has failed."""

from __future__ import annotations

import enum
from datetime import timedelta

from ._duration import Duration, millis


class Reason(str, enum.Enum):
    """Why an attempt is to stop."""

    CANCELED = "canceled"
    """A client has canceled the job."""
    TIMEOUT = "timeout"
    """The attempt's time is up."""
    LEASE_LOST = "lease_lost"
    """The orchestrator can no longer prove that it owns the job, or is not
    heard of. Touch nothing more: another attempt may start at any moment."""
    SHUTDOWN = "shutdown"
    """The orchestrator shuts down and gives the job back. Another attempt will
    start from the last checkpoint."""

    def __str__(self) -> str:
        return self.value


class Stopped(Exception):
    """Raised within a handler when its attempt is to stop; see
    Job.raise_if_cancelled. Let it pass."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"stopped: {reason}")
        self.reason = reason


class Failure(Exception):
    """A failure with a wish.

    Any other exception fails the attempt, too, and is tried again by the retry
    policy; this one can say how.

    code is a short, stable name that is stored with the attempt. permanent says
    that no further attempt can succeed: the job is dead-lettered. retry_after is
    the wait before the next attempt, if one is left, in place of the policy's;
    a number is in seconds.
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
    """No further attempt can succeed: the job is dead-lettered."""

    def __init__(self, message: str = "", *, code: str = "") -> None:
        super().__init__(message, code=code, permanent=True)


class CheckpointTooLarge(Permanent, ValueError):
    """A checkpoint is larger than the orchestrator takes. A handler that lets it
    pass fails for good: another attempt would get no further."""


class RetryAfter(Failure):
    """The next attempt, if one is left, waits this long in place of the retry
    policy's backoff. A number is in seconds."""

    def __init__(self, delay: Duration, message: str = "", *, code: str = "") -> None:
        super().__init__(message, code=code, retry_after=delay)


class Snooze(Exception):
    """Ends the attempt without charging it to the job, which is attempted again
    after the delay. A number is in seconds."""

    def __init__(self, delay: Duration) -> None:
        self.retry_after_ms = millis(delay)
        super().__init__(f"snooze for {timedelta(milliseconds=self.retry_after_ms)}")


class Cancel(Exception):
    """Ends the job as canceled, by its handler's own decision. The reason goes
    to the log."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "canceled by the handler")
        self.reason = reason
