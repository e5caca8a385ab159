"""Outcomes of attempts."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import dataclass

from . import handler_pb2 as pb
from ._errors import Cancel, Failure, Reason, Snooze, Stopped
from ._json import clean
from ._limits import (
    CODE_LEASE_LOST,
    CODE_PANIC,
    CODE_TIMEOUT,
    MAX_CODE_BYTES,
    MAX_MESSAGE_TEXT_BYTES,
    MAX_STACK_BYTES,
)


@dataclass
class Verdict:
    """What an exception asks for."""

    permanent: bool = False
    canceled: str | None = None
    snoozed: bool = False
    retry_after_ms: int | None = None
    code: str = ""
    deliberate: bool = True
    """Whether only exceptions of this package were raised."""

    def add(self, error: BaseException) -> None:
        """Adds what the exception asks for. An exception group asks for all that its
        members ask for; the first of two delays or codes counts."""
        if isinstance(error, BaseExceptionGroup):
            for member in error.exceptions:
                self.add(member)
        elif isinstance(error, Failure):
            self.permanent = self.permanent or error.permanent
            self.code = self.code or error.code
            self._wait(error.retry_after_ms)
        elif isinstance(error, Snooze):
            self.snoozed = True
            self._wait(error.retry_after_ms)
        elif isinstance(error, Cancel):
            self.canceled = self.canceled or error.reason
        elif not isinstance(error, Stopped):
            self.deliberate = False
            if not isinstance(error, (Exception, asyncio.CancelledError)):
                self.code = self.code or CODE_PANIC  # SystemExit, for one

    def _wait(self, millis: int | None) -> None:
        if self.retry_after_ms is None:
            self.retry_after_ms = millis


def verdict_of(error: BaseException) -> Verdict:
    verdict = Verdict()
    verdict.add(error)
    return verdict


def succeeded(result: bytes) -> pb.Outcome:
    return pb.Outcome(succeeded=pb.Succeeded(result=result))


def unsuccessful(error: BaseException, asked: Reason | None, cause: Reason | None) -> pb.Outcome:
    """The outcome of an attempt whose handler raised the error. asked is the reason
    for which the orchestrator asked the attempt to stop. cause is the first reason to
    stop, from the orchestrator or from the process itself. Both are None for none."""
    verdict = verdict_of(error)
    if asked is None and cause is Reason.LEASE_LOST:
        # Whatever the error asks for: if the orchestrator was only slow and still owns
        # the job, it must run the job again.
        return _failed(error, cause, CODE_LEASE_LOST)
    if asked is Reason.TIMEOUT or asked is None and cause is Reason.TIMEOUT:
        # Whatever the error asks for: it came after the attempt was stopped.
        return _failed(error, Reason.TIMEOUT, CODE_TIMEOUT)
    if asked is not None or verdict.canceled is not None:
        return pb.Outcome(canceled=pb.Canceled())
    if verdict.snoozed:
        return pb.Outcome(snoozed=pb.Snoozed(retry_after_ms=verdict.retry_after_ms or 0))
    ended = _failed(error, cause, verdict.code, "" if verdict.deliberate else _stack(error))
    ended.failed.permanent = verdict.permanent
    if verdict.retry_after_ms is not None:
        ended.failed.retry_after_ms = verdict.retry_after_ms
    return ended


def _failed(error: BaseException, cause: Reason | None, code: str, stack: str = "") -> pb.Outcome:
    if cause is not None and isinstance(error, asyncio.CancelledError):
        error = Stopped(cause)  # names the reason
    return pb.Outcome(
        failed=pb.Failed(
            code=clean(code, MAX_CODE_BYTES),
            message=clean(_message(error), MAX_MESSAGE_TEXT_BYTES),
            stack=clean(stack, MAX_STACK_BYTES),
        )
    )


def _message(error: BaseException) -> str:
    """The error's text, with its type unless it is one of this package."""
    try:
        text = str(error)
    except Exception:  # its own __str__ is broken
        text = ""
    if text and isinstance(error, (Failure, Snooze, Cancel, Stopped)):
        return text
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def _stack(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:
        return ""
