"""The Work stream and its attempts."""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
import traceback
from typing import Any, Callable, Iterator, Mapping

import grpc

from . import handler_pb2 as pb
from ._attempt import Attempt
from ._caps import Caps
from ._errors import Reason
from ._handler import Handler
from ._outbox import Outbox
from ._threads import Threads

_REASONS = {
    pb.Cancel.REASON_TIMEOUT: Reason.TIMEOUT,
    pb.Cancel.REASON_LEASE_LOST: Reason.LEASE_LOST,
    pb.Cancel.REASON_SHUTDOWN: Reason.SHUTDOWN,
}


class Session:
    """Runs attempts until it is drained or its stream breaks."""

    def __init__(
        self,
        handlers: Mapping[str, Handler[Any, Any]],
        loop: asyncio.AbstractEventLoop,
        exit: Callable[[str], None],
        caps: Caps,
    ) -> None:
        self.loop = loop
        self.outbox = Outbox()
        self.exit = exit
        """Ends the process at once."""
        self.caps = caps
        self.context = contextvars.copy_context()
        """The context variables that handlers start with."""
        self._handlers = handlers
        self._threads = Threads()
        self._lock = threading.Lock()
        self._sooner = threading.Condition(self._lock)
        self._look_at = math.inf
        self._attempts: dict[int, Attempt] = {}
        self._draining = False
        self._lost = False

    @property
    def is_lost(self) -> bool:
        """Whether the stream broke before the session was drained."""
        return self._lost

    @property
    def is_drained(self) -> bool:
        """Whether no attempt runs and none will start."""
        return self._draining and not self._attempts and not self._lost

    def work(self, requests: Iterator[pb.WorkRequest], context: grpc.ServicerContext) -> Iterator[pb.WorkResponse]:
        """Serves the stream until it is drained or breaks. After a drain, it first sends
        every outcome. When the stream breaks, the orchestrator counts every attempt as
        crashed, so all attempts stop with a lost lease."""
        if not context.add_callback(self._lose):
            self._lose()
        self._go(self._watch)
        self._go(self._receive, requests)
        yield from self.outbox.deliver()

    def finish(self, attempt: Attempt, ended: pb.Outcome) -> None:
        """Reports an attempt's outcome."""
        self.outbox.outcome(attempt, ended)
        with self._lock:
            self._attempts.pop(attempt.handle, None)
            self._close_when_drained()

    def _lose(self) -> None:
        with self._lock:
            if not self.is_drained:
                self._lost = True
            for attempt in self._attempts.values():
                attempt.lose()
        self.outbox.close()

    def _go(self, function: Callable[..., None], *args: object) -> None:
        """Runs the function on a thread. If it fails, the process ends."""

        def run() -> None:
            try:
                function(*args)
            except Exception:
                traceback.print_exc()
                self.exit("a thread of the stream failed")

        threading.Thread(target=run, name="holdfast-stream", daemon=True).start()

    def _receive(self, requests: Iterator[pb.WorkRequest]) -> None:
        while True:
            try:
                request = next(requests, None)
            except Exception:
                return  # the stream broke; gRPC calls _lose too
            if request is None:
                break
            self._take(request)
        self._drain()

    def _take(self, request: pb.WorkRequest) -> None:
        if request.starts:
            self._begin(request.starts)
        with self._lock:
            for handle in request.extension.handles:
                if attempt := self._attempts.get(handle):
                    attempt.extend(request.extension.lease_ms)
            for cancel in request.cancels:
                if attempt := self._attempts.get(cancel.handle):
                    attempt.ask(_REASONS.get(cancel.reason, Reason.CANCELED))
        if request.drain:
            self._drain()

    def _begin(self, starts: Iterator[pb.Start]) -> None:
        begun = [Attempt(start, self._handlers.get(start.job_type), self) for start in starts]
        with self._lock:
            if self.is_drained or self._lost:
                return  # the orchestrator said that no start would follow
            for attempt in begun:
                self._attempts[attempt.handle] = attempt
                if attempt.due < self._look_at:
                    self._look_at = attempt.due
                    self._sooner.notify()
        on_loop = [attempt for attempt in begun if attempt.is_async]
        if on_loop:
            self.loop.call_soon_threadsafe(_begin_all, on_loop)
        for attempt in begun:
            if not attempt.is_async:
                self._threads.run(attempt.perform)

    def _drain(self) -> None:
        with self._lock:
            self._draining = True
            self._close_when_drained()

    def _close_when_drained(self) -> None:
        if self.is_drained:
            self.outbox.close()
            self._sooner.notify()

    def _watch(self) -> None:
        """Stops attempts when their time is up. It continues after the stream broke: a
        handler that does not stop must not run longer than its lease."""
        with self._lock:
            while not self.is_drained:
                now = time.monotonic()
                self._look_at = min((a.look(now) for a in self._attempts.values()), default=math.inf)
                wait = self._look_at - now
                self._sooner.wait(wait if wait < threading.TIMEOUT_MAX else None)


def _begin_all(attempts: list[Attempt]) -> None:
    for attempt in attempts:
        attempt.begin()
