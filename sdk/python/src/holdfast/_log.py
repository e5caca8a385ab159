"""Log records of jobs."""

from __future__ import annotations

import contextvars
import json
import logging
import sys
from typing import TYPE_CHECKING, Any, MutableMapping

from . import handler_pb2 as pb
from ._json import clean
from ._limits import MAX_LOG_BYTES
from ._time import rfc3339
from ._tracing import current_ids

if TYPE_CHECKING:
    from ._job import Job

current_job: contextvars.ContextVar[Job[Any] | None] = contextvars.ContextVar("holdfast_job", default=None)
"""The job of the running handler."""

_JOB_KEY = "holdfast_job"

_OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", _JOB_KEY}
"""The attributes of every record. All others were passed as extra."""

_logger = logging.getLogger("holdfast.job")


if TYPE_CHECKING:
    _LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:
    _LoggerAdapter = logging.LoggerAdapter


class JobLogger(_LoggerAdapter):
    """The logger of one job; see Job.log."""

    def __init__(self, job: Job[Any]) -> None:
        super().__init__(_logger, {})
        self._job = job

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(kwargs.get("extra") or {}), _JOB_KEY: self._job}
        return msg, kwargs


class LogHandler(logging.Handler):
    """Sends what is logged while a job runs to the orchestrator, with the job's id.
    Everything else goes to standard error.

    Job.log works without it. It is for the loggers of libraries:

        logging.basicConfig(handlers=[holdfast.LogHandler()], level=logging.INFO)
    """

    def emit(self, record: logging.LogRecord) -> None:
        job = getattr(record, _JOB_KEY, None) or current_job.get()
        try:
            if job is not None and job._reporter is not None:
                job._reporter.log(record)
            else:
                print(self.format(record), file=sys.stderr)
        except Exception:
            self.handleError(record)


def log_to_stream() -> None:
    """Sends every record of Job.log to the orchestrator, which decides what to keep."""
    _logger.handlers = [LogHandler()]
    _logger.setLevel(1)
    _logger.propagate = False


def wire(record: logging.LogRecord, handle: int) -> pb.Log:
    """The record as the protocol has it."""
    return pb.Log(
        handle=handle,
        level=_level(record.levelno),
        message=clean(record.getMessage(), MAX_LOG_BYTES),
        attributes=_attributes(record),
        time=rfc3339(record.created),
    )


def _level(number: int) -> pb.Log.Level:
    if number < logging.INFO:
        return pb.Log.LEVEL_DEBUG
    if number < logging.WARNING:
        return pb.Log.LEVEL_INFO
    if number < logging.ERROR:
        return pb.Log.LEVEL_WARN
    return pb.Log.LEVEL_ERROR


def _attributes(record: logging.LogRecord) -> bytes:
    """The span's ids, what was passed as extra, and the exception, as a JSON object;
    empty for none."""
    attributes: dict[str, Any] = dict(current_ids())
    attributes.update((name, value) for name, value in record.__dict__.items() if name not in _OWN)
    if record.exc_info:
        attributes["exception"] = logging.Formatter().formatException(record.exc_info)
    if not attributes:
        return b""
    try:
        text = json.dumps(attributes, ensure_ascii=False, allow_nan=False, default=str)
    except (TypeError, ValueError):
        text = json.dumps({name: str(value) for name, value in attributes.items()}, ensure_ascii=False)
    encoded = text.encode(errors="replace")
    return encoded if len(encoded) <= MAX_LOG_BYTES else b'{"attributes":"too large"}'
