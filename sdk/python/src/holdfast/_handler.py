"""A job type with the function that runs its jobs."""

from __future__ import annotations

import inspect
import json
from typing import Any, Callable, Generic, Mapping, TypeVar, Union

from . import handler_pb2 as pb
from ._duration import Duration, bounded
from ._job import Job
from ._limits import MAX_ATTEMPTS, MAX_CONCURRENCY, MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES, MAX_SCHEMA_BYTES
from ._payload import Convert, Payload
from ._retry import RetryPolicy
from ._terms import Terms

T = TypeVar("T")
R = TypeVar("R")

Schema = Union[Mapping[str, Any], bool]


class Handler(Generic[T, R]):
    """A job type with the function that runs its jobs, for serve. Call it like the
    function."""

    def __init__(
        self,
        job_type: str,
        function: Callable[[Job[T]], R],
        *,
        schema: Schema | None = None,
        timeout: Duration | None = None,
        retry: RetryPolicy | None = None,
        max_attempts: int | None = None,
        concurrency: int | None = None,
        description: str = "",
        terms: Terms | None = None,
    ) -> None:
        check_text("the name", job_type, MAX_NAME_BYTES)
        try:
            if not callable(function):
                raise TypeError(f"{function!r} is not a function")
            self.job_type = job_type
            self.function = function
            self.is_async = _is_async(function)
            payload = Payload.of(function)
            self.convert: Convert | None = payload.convert if payload else None
            if schema is None and payload:
                schema = payload.schema
            self._declared = _declare(job_type, schema, timeout, retry, max_attempts, concurrency, description, terms)
        except (TypeError, ValueError) as error:
            raise type(error)(f"job type {job_type!r}: {error}") from None
        self.__doc__ = function.__doc__

    def __call__(self, job: Job[T]) -> R:
        return self.function(job)

    @property
    def schema(self) -> Any:
        """The JSON Schema of the payload; None for none."""
        return json.loads(self._declared.schema) if self._declared.schema else None

    def wire(self) -> pb.JobType:
        """The job type as the protocol has it."""
        return self._declared


def handler(
    job_type: str,
    *,
    schema: Schema | None = None,
    timeout: Duration | None = None,
    retry: RetryPolicy | None = None,
    max_attempts: int | None = None,
    concurrency: int | None = None,
    description: str = "",
    terms: Terms | None = None,
) -> Callable[[Callable[[Job[T]], R]], Handler[T, R]]:
    """Makes a handler of a function or a coroutine function.

    The function takes a Job. Its return value is the job's result, as JSON; None
    means no result. A function runs on a thread of its own, a coroutine function on
    the event loop of the process.

    Annotate the parameter to get a typed payload: with `job: Job[Letter]`,
    job.payload is a Letter, and the schema is made from Letter. Letter is a
    dataclass, a TypedDict, a pydantic model or any type that JSON has.

    ============  ===========================================================
    schema        JSON Schema (2020-12) of the payload, in place of the one made
                  from the annotation. Jobs whose payload does not fit are
                  refused when they are submitted
    timeout       limits each attempt; a number is in seconds
    retry         how long a job waits between attempts
    max_attempts  how many attempts a job gets, the first one included
    concurrency   the most attempts of this type at once in each process
    description   what the job type is for, in one line, for people
    terms         how its jobs share with others: Terms
    ============  ===========================================================

    The orchestrator's configuration decides what you leave out. It also overrides
    timeout, retry and max_attempts.
    """

    def decorate(function: Callable[[Job[T]], R]) -> Handler[T, R]:
        return Handler(
            job_type,
            function,
            schema=schema,
            timeout=timeout,
            retry=retry,
            max_attempts=max_attempts,
            concurrency=concurrency,
            description=description,
            terms=terms,
        )

    return decorate


def _declare(
    job_type: str,
    schema: Schema | None,
    timeout: Duration | None,
    retry: RetryPolicy | None,
    max_attempts: int | None,
    concurrency: int | None,
    description: str,
    terms: Terms | None,
) -> pb.JobType:
    declared = pb.JobType(name=job_type)
    if schema is not None:
        if not isinstance(schema, (Mapping, bool)):
            raise TypeError("the schema is neither a mapping nor a bool")
        declared.schema = json.dumps(schema, ensure_ascii=False, allow_nan=False).encode()
        if len(declared.schema) > MAX_SCHEMA_BYTES:
            raise ValueError(f"the schema is longer than {MAX_SCHEMA_BYTES} bytes")
    if timeout is not None:
        declared.timeout_ms = bounded("timeout", timeout)
    if retry is not None:
        if not isinstance(retry, RetryPolicy):
            raise TypeError(f"retry {retry!r} is not a RetryPolicy")
        declared.retry.CopyFrom(retry.wire())
    if max_attempts is not None:
        declared.max_attempts = check_count("max_attempts", max_attempts, MAX_ATTEMPTS)
    if concurrency is not None:
        declared.concurrency = check_count("concurrency", concurrency, MAX_CONCURRENCY)
    if description:
        check_text("the description", description, MAX_DESCRIPTION_BYTES)
        declared.description = description
    if terms is not None:
        if not isinstance(terms, Terms):
            raise TypeError(f"terms {terms!r} is not Terms")
        declared.terms.CopyFrom(terms.wire())
    return declared


def check_count(what: str, count: int, most: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise ValueError(f"{what} {count!r} is not an integer between 1 and {most}")
    return count


def check_text(what: str, text: str, limit: int) -> None:
    if not isinstance(text, str) or not text:
        raise ValueError(f"{what} {text!r} is not a text, or empty")
    if not text.isprintable():
        raise ValueError(f"{what} {text[:40]!r} contains a character that cannot be printed")
    if len(text.encode()) > limit:
        raise ValueError(f"{what} {text[:40]!r} is longer than {limit} bytes")


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))
