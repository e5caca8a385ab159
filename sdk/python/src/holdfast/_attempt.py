"""The run of one attempt."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import time
from typing import TYPE_CHECKING, Any, Callable

from . import handler_pb2 as pb
from ._caps import check_size
from ._errors import CheckpointTooLarge, Failure, Reason
from ._followup import FollowUps
from ._job import Job
from ._json import encode
from ._limits import (
    CODE_BAD_PAYLOAD,
    CODE_BAD_RESULT,
    CODE_CHECKPOINT_TOO_LARGE,
    CODE_RESULT_TOO_LARGE,
    CODE_UNKNOWN_TYPE,
)
from ._log import current_job, wire
from ._outbox import Notes
from ._outcome import succeeded, unsuccessful, verdict_of
from ._predecessor import predecessors_of
from ._time import parse
from ._tracing import enter

if TYPE_CHECKING:
    from ._handler import Handler
    from ._session import Session

LEASE_MARGIN = 6
"""An attempt must stop when a sixth of its lease is left, or MAX_LEASE_MARGIN
seconds if that is less."""

MAX_LEASE_MARGIN = 5.0


class Attempt:
    """Runs a handler, stops it when its time is up, and reports the outcome. The
    lease is how long it may run without a word from the orchestrator."""

    def __init__(self, start: pb.Start, handler: Handler[Any, Any] | None, session: Session) -> None:
        self.handle: int = start.handle
        self.notes = Notes()
        self._start = start
        self._handler = handler
        self._session = session
        self._asked: Reason | None = None
        self._follow_ups = FollowUps()
        self._task: asyncio.Task[None] | None = None
        self._timeout_at = time.monotonic() + start.timeout_ms / 1000
        self.extend(start.lease_ms)
        self._job: Job[Any] = Job(
            id=start.job_id,
            type=start.job_type,
            tenant=start.tenant,
            raw_payload=start.payload,
            attempt=start.attempt,
            max_attempts=start.max_attempts,
            fence=start.fence,
            created_at=parse(start.created_at),
            timeout=start.timeout_ms / 1000,
            traceparent=start.traceparent,
            tracestate=start.tracestate,
            baggage=start.baggage,
            reporter=self,
        )

    @property
    def job_id(self) -> str:
        return self._job.id

    @property
    def due(self) -> float:
        """When look first has something to do."""
        return min(self._warn_at, self._timeout_at)

    @property
    def is_async(self) -> bool:
        return self._handler is not None and self._handler.is_async

    # Time.

    def extend(self, lease_ms: int) -> None:
        """Extends the lease to this long from now."""
        lease = lease_ms / 1000
        self._lease_until = time.monotonic() + lease
        self._warn_at = self._lease_until - min(lease / LEASE_MARGIN, MAX_LEASE_MARGIN)

    def look(self, now: float) -> float:
        """Stops the attempt when its time is up, and returns when to look again. It
        goes by the clock, so a lease also runs out while the process is suspended."""
        if now >= self._lease_until:
            self._session.exit(f"the lease of job {self.job_id} ran out and its handler has not stopped")
        due = self._warn_at
        if now >= self._warn_at:
            self._stop(Reason.LEASE_LOST)
            due = self._lease_until
        if now >= self._timeout_at:
            self._stop(Reason.TIMEOUT)
            return due
        return min(due, self._timeout_at)

    def ask(self, reason: Reason) -> None:
        """Stops the attempt at the orchestrator's request. The first reason counts."""
        if self._asked is None:
            self._asked = reason
        self._stop(reason)

    def lose(self) -> None:
        """Stops the attempt because the connection to the orchestrator is lost."""
        self._stop(Reason.LEASE_LOST)

    def _stop(self, reason: Reason) -> None:
        self._job._stop(reason, self._cancel_task if self.is_async else None)

    def _cancel_task(self) -> None:
        loop = self._session.loop
        # After the task's first step: a task that is canceled before it never runs, and
        # so never reports.
        loop.call_soon_threadsafe(lambda: loop.call_soon(lambda: self._task and self._task.cancel()))

    # The run.

    def perform(self) -> None:
        """Runs a function, on the calling thread."""
        self._session.context.copy().run(self._perform)

    def _perform(self) -> None:
        current_job.set(self._job)
        enter(self._start.traceparent, self._start.tracestate)
        try:
            ended = self._succeeded(self._prepare()(self._job))
        except BaseException as error:
            ended = self._unsuccessful(error)
        self._finish(ended)

    def begin(self) -> None:
        """Runs a coroutine function, on the event loop."""
        self._task = self._session.loop.create_task(
            self._perform_async(), context=self._session.context.copy()
        )

    async def _perform_async(self) -> None:
        current_job.set(self._job)
        enter(self._start.traceparent, self._start.tracestate)
        try:
            ended = self._succeeded(await self._prepare()(self._job))
        except BaseException as error:
            ended = self._unsuccessful(error)
        self._finish(ended)

    def _prepare(self) -> Callable[[Job[Any]], Any]:
        """Decodes payload and checkpoint, and returns the function to call."""
        if self._handler is None:
            # Not permanent: another process may serve the type.
            raise Failure(f"this plugin has no handler for {self._start.job_type}", code=CODE_UNKNOWN_TYPE)
        try:
            payload = json.loads(self._start.payload) if self._start.payload else None
            self._job.payload = self._handler.convert(payload) if self._handler.convert else payload
            self._job.predecessors = predecessors_of(self._start.predecessors)
            if self._start.checkpoint:
                self._job._checkpoint = json.loads(self._start.checkpoint)
        except (ValueError, RecursionError) as error:
            raise Failure(f"payload: {error}", code=CODE_BAD_PAYLOAD, permanent=True) from error
        return self._handler.function

    def _succeeded(self, result: Any) -> pb.Outcome:
        if result is None:
            return succeeded(b"")
        try:
            encoded = encode(result)
        except (ValueError, TypeError, RecursionError) as error:
            if inspect.iscoroutine(result):
                result.close()
            raise Failure(f"result: {error}", code=CODE_BAD_RESULT, permanent=True) from error
        try:
            check_size(len(encoded), self._session.caps.result)
        except ValueError as error:
            raise Failure(f"result: {error}", code=CODE_RESULT_TOO_LARGE, permanent=True) from error
        return succeeded(encoded)

    def _unsuccessful(self, error: BaseException) -> pb.Outcome:
        # The protocol has no field for the reason.
        if reason := verdict_of(error).canceled:
            self._job.log.info("the handler cancels its job", extra={"reason": reason})
        return unsuccessful(error, self._asked, self._job.cancel_reason)

    def _finish(self, ended: pb.Outcome) -> None:
        ended.handle = self.handle
        follow_ups = self._follow_ups.end()
        if ended.WhichOneof("result") == "succeeded":
            ended.succeeded.follow_ups.extend(follow_ups)
        self._session.finish(self, ended)
        # Break the cycle of attempt and job, so that both go without the garbage
        # collector.
        self._task = None
        del self._job, self._start

    # What the job reports.

    def progress(self, encoded: bytes) -> None:
        check_size(len(encoded), self._session.caps.progress)
        self._session.outbox.progress(self, encoded)

    def checkpoint(self, encoded: bytes) -> None:
        try:
            check_size(len(encoded), self._session.caps.checkpoint)
        except ValueError as error:
            raise CheckpointTooLarge(f"checkpoint: {error}", code=CODE_CHECKPOINT_TOO_LARGE) from error
        self._session.outbox.checkpoint(self, encoded)

    def submit(self, encoded: bytes) -> None:
        self._follow_ups.add(encoded, self._session.caps)

    def log(self, record: logging.LogRecord) -> None:
        self._session.outbox.log(self, wire(record, self.handle))
