"""One attempt at a job, as its handler sees it."""

from __future__ import annotations

import json
import logging
import threading
import time
from datetime import datetime
from typing import Any, Callable, Generic, Protocol, Sequence, TypeVar

from ._duration import Duration
from ._errors import Reason, Stopped
from ._followup import submission
from ._json import encode
from ._log import JobLogger
from ._predecessor import Predecessor, result_of

T = TypeVar("T")


class Reporter(Protocol):
    """Takes what a job reports, without waiting."""

    def progress(self, encoded: bytes) -> None: ...
    def checkpoint(self, encoded: bytes) -> None: ...
    def submit(self, encoded: bytes) -> None: ...
    def log(self, record: logging.LogRecord) -> None: ...


class Job(Generic[T]):
    """One attempt at a job whose payload is a T.

    In tests you create jobs yourself. Such a job discards its progress and
    checkpoints, keeps what is submitted in its list submitted, and logs through
    Python's own logging.

    ============  ===========================================================
    payload       the payload, decoded from JSON
    id            the job's id, the same in every attempt. Give it to other
                  systems to deduplicate by
    type, tenant  of the job
    attempt       counts from 1, up to max_attempts
    fence         grows with every attempt. Pass it to systems that can refuse a
                  smaller one: it keeps out an earlier attempt that still runs
                  somewhere
    predecessors  the jobs that it comes after in its workflow, in the order of
                  `after`; empty for a job of no workflow
    created_at    when the job was submitted, by the database's clock
    raw_payload   the JSON exactly as it was submitted
    traceparent,  the W3C trace context, for your own requests; empty when the
    tracestate    job is not traced
    baggage       the W3C baggage of the request that submitted the job; empty
                  for none
    ============  ===========================================================
    """

    def __init__(
        self,
        payload: T = None,  # type: ignore[assignment]
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
        predecessors: Sequence[Predecessor] = (),
        reporter: Reporter | None = None,
    ) -> None:
        self.payload: T = payload
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
        self.raw_payload = encode(payload) if raw_payload is None else raw_payload
        self.submitted: list[dict[str, Any]] = []
        self.predecessors: tuple[Predecessor, ...] = tuple(predecessors)
        self._deadline = time.monotonic() + timeout
        self._checkpoint = checkpoint
        self._reporter = reporter
        self._reason: Reason | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    # What a handler reports.

    def progress(self, value: Any) -> None:
        """Shows the value, as JSON, to everyone who looks at the job. Only the last
        value counts. It returns before the value is stored.

        It raises ValueError or TypeError when the value is not JSON or is larger than
        the orchestrator takes (64 KiB unless configured otherwise), and RuntimeError
        after the end of the attempt.
        """
        encoded = encode(value)
        if self._reporter is not None:
            self._reporter.progress(encoded)

    def checkpoint(self, value: Any) -> None:
        """Saves the value, as JSON, for the next attempt, which gets it from resume.
        Only the last value counts. It returns before the value is stored, but the value
        is stored before the attempt's outcome is. Once the orchestrator has received it,
        it survives a crash of the process.

        It raises what progress raises, and CheckpointTooLarge for a value that is too
        large (over 1 MiB unless configured otherwise).
        """
        encoded = encode(value)
        if self._reporter is not None:
            self._reporter.checkpoint(encoded)

    def resume(self, default: Any = None) -> Any:
        """The last checkpoint of an earlier attempt, or the default if there is none."""
        return default if self._checkpoint is None else self._checkpoint

    def submit(
        self,
        type: str,
        payload: Any = None,
        *,
        key: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        hold: bool | None = None,
        max_attempts: int | None = None,
        timeout: Duration | None = None,
        tags: Sequence[str] | None = None,
        concurrency_key: str | None = None,
        concurrency_limit: int | None = None,
        on_conflict: str | None = None,
        fairness_key: str | None = None,
        expires_at: datetime | None = None,
        ttl: Duration | None = None,
        unique_for: Duration | None = None,
        unique_while_open: bool = False,
        unique_by: Sequence[str] | None = None,
        callback_url: str | None = None,
    ) -> None:
        """Submits a job that follows this one. It becomes real together with the success
        of this attempt, in one transaction, and never otherwise: if the attempt fails,
        snoozes, is canceled or lost, there is no such job, and the next attempt submits
        its own. The options are the members of POST /jobs; what you leave out takes the
        default of the job type. The job belongs to this job's tenant.

        It raises ValueError or TypeError for what is not JSON, FollowUpsTooLarge for more
        jobs than the orchestrator takes (1,000 unless configured otherwise, and 4 MiB of
        JSON together), and RuntimeError after the end of the attempt. The orchestrator
        checks the rest when the attempt has succeeded; if it refuses a job, the attempt
        fails with the code followups_refused.
        """
        members = submission(
            type,
            payload,
            key=key,
            priority=priority,
            run_at=run_at,
            delay=delay,
            hold=hold,
            max_attempts=max_attempts,
            timeout=timeout,
            tags=tags,
            concurrency_key=concurrency_key,
            concurrency_limit=concurrency_limit,
            on_conflict=on_conflict,
            fairness_key=fairness_key,
            expires_at=expires_at,
            ttl=ttl,
            unique_for=unique_for,
            unique_while_open=unique_while_open,
            unique_by=unique_by,
            callback_url=callback_url,
        )
        encoded = encode(members)
        if self._reporter is not None:
            self._reporter.submit(encoded)
        else:
            self.submitted.append(json.loads(encoded))

    def result_of(self, name: str, default: Any = None) -> Any:
        """The result of the predecessor with this name, or the default if it has none, or
        was skipped or canceled.

        It raises Permanent if there is no such predecessor, or if the orchestrator has
        left the result out.
        """
        return result_of(self.predecessors, name, default)

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """Its records appear in the orchestrator's log with the job's id and what you
        pass as extra. It never waits."""
        return JobLogger(self)

    # Whether to stop.

    @property
    def canceled(self) -> bool:
        """Whether the attempt must stop, for any reason. If a handler continues, its
        whole process is killed."""
        return self._reason is not None

    @property
    def cancel_reason(self) -> Reason | None:
        """Why the attempt must stop; None while it need not."""
        return self._reason

    @property
    def time_left(self) -> float:
        """Seconds until the attempt times out."""
        return max(self._deadline - time.monotonic(), 0.0)

    def raise_if_canceled(self) -> None:
        """Raises Stopped when the attempt must stop."""
        if self._reason is not None:
            raise Stopped(self._reason)

    def wait(self, seconds: float) -> bool:
        """Sleeps until the time is over or the attempt must stop, and returns whether
        it must stop. Coroutines use asyncio.sleep instead."""
        self._stopping.wait(min(seconds, threading.TIMEOUT_MAX))
        return self.canceled

    def stop(self, reason: Reason = Reason.CANCELED) -> None:
        """Asks the handler to stop, as the orchestrator does; for tests. Only the first
        call counts."""
        self._stop(reason)

    def _stop(self, reason: Reason, then: Callable[[], None] | None = None) -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
        self._stopping.set()
        if then is not None:
            then()
