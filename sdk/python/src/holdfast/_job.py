"""One attempt at a job, as its handler sees it."""

from __future__ import annotations

import json
import logging
import threading
import time
from datetime import datetime
from typing import Any, Callable, Protocol

from ._errors import Reason, Stopped
from ._json import encode
from ._log import JobLogger


class Reporter(Protocol):
    """Takes what a job reports. None of it waits."""

    def progress(self, encoded: bytes) -> None: ...
    def checkpoint(self, encoded: bytes) -> None: ...
    def log(self, record: logging.LogRecord) -> None: ...


class Job:
    """One attempt at a job.

    One that a test makes by hand belongs to no attempt: what it reports goes
    nowhere, and its log into Python's own.

    ============  ===========================================================
    payload       the payload, decoded from JSON
    id            the job's id, the same in every attempt: what to tell others
                  for deduplication
    type, tenant  the job's own
    attempt       counts from 1, up to max_attempts
    fence         grows with every attempt at the job. Whatever this attempt
                  writes to can remember the highest one it has seen and
                  refuse lower ones, and so keep out an attempt that was given
                  up but still runs somewhere
    created_at    when the job was submitted, by the database's clock
    raw_payload   the JSON to the letter as it was submitted
    traceparent,  the W3C trace context for requests of the handler's own;
    tracestate    empty when the job is not traced
    baggage       the W3C baggage of the request that brought the job, for the
                  same; empty for none
    ============  ===========================================================
    """

    def __init__(
        self,
        payload: Any = None,
        *,
        id: str = "",
        type: str = "",
        tenant: str = "default",
        attempt: int = 1,
        max_attempts: int = 1,
        fence: int = 1,
        created_at: datetime | None = None,
        checkpoint: Any = None,
        timeout: float = float("inf"),
        traceparent: str = "",
        tracestate: str = "",
        baggage: str = "",
        raw_payload: bytes | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.payload = payload
        self.id = id
        self.type = type
        self.tenant = tenant
        self.attempt = attempt
        self.max_attempts = max_attempts
        self.fence = fence
        self.created_at = created_at
        self.traceparent = traceparent
        self.tracestate = tracestate
        self.baggage = baggage
        self.raw_payload = json.dumps(payload).encode() if raw_payload is None else raw_payload
        self._deadline = time.monotonic() + timeout
        self._checkpoint = checkpoint
        self._reporter = reporter
        self._reason: Reason | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    # What a handler reports.

    def progress(self, value: Any) -> None:
        """Shows the value, as JSON, to whoever looks at the job. Only the last
        one counts. It does not wait for the value to be stored.

        It raises ValueError or TypeError when the value is not JSON or is larger
        than the orchestrator takes (64 KiB, unless it is configured otherwise),
        and RuntimeError after the attempt's end.
        """
        encoded = encode(value)
        if self._reporter is not None:
            self._reporter.progress(encoded)

    def checkpoint(self, value: Any) -> None:
        """Saves the value, as JSON, for the next attempt, which finds it with
        resume. Only the last one counts. It is stored before this attempt's end
        is, and also when the process dies after the orchestrator has received
        it; it does not wait for that. It raises as progress does; for a value
        that is too large (by default above 1 MiB) CheckpointTooLarge, a ValueError
        that fails the attempt for good.
        """
        encoded = encode(value)
        if self._reporter is not None:
            self._reporter.checkpoint(encoded)

    def resume(self, default: Any = None) -> Any:
        """The last checkpoint of an earlier attempt; the default when there is
        none."""
        return default if self._checkpoint is None else self._checkpoint

    @property
    def log(self) -> logging.LoggerAdapter:
        """Its records appear in the orchestrator's log with the job's id; what is
        under extra comes along. It never waits."""
        return JobLogger(self)

    # Whether it is to stop.

    @property
    def cancelled(self) -> bool:
        """Whether the attempt is to stop, for whatever reason. A handler that
        goes on regardless is killed with its whole process."""
        return self._reason is not None

    @property
    def cancel_reason(self) -> Reason | None:
        """Why the attempt is to stop; None while it is not."""
        return self._reason

    @property
    def time_left(self) -> float:
        """Seconds until the attempt times out."""
        return max(self._deadline - time.monotonic(), 0.0)

    def raise_if_cancelled(self) -> None:
        """Raises Stopped when the attempt is to stop."""
        if self._reason is not None:
            raise Stopped(self._reason)

    def wait(self, seconds: float) -> bool:
        """Sleeps, but no longer than until the attempt is to stop; returns
        whether it is. Asynchronous handlers use asyncio.sleep."""
        self._stopping.wait(min(seconds, threading.TIMEOUT_MAX))
        return self.cancelled

    def stop(self, reason: Reason = Reason.CANCELED) -> None:
        """Asks the handler to stop, as the orchestrator does; for tests. The
        first reason counts."""
        self._stop(reason)

    def _stop(self, reason: Reason, then: Callable[[], None] | None = None) -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
        self._stopping.set()
        if then is not None:
            then()
