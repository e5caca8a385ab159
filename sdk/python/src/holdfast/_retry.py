"""Retry policies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import handler_pb2 as pb
from ._duration import Duration, bounded

_BACKOFFS = {
    "exponential": pb.Retry.BACKOFF_EXPONENTIAL,
    "fixed": pb.Retry.BACKOFF_FIXED,
    "immediate": pb.Retry.BACKOFF_IMMEDIATE,
}


@dataclass(frozen=True)
class RetryPolicy:
    """How long a job waits before retry n, counted from 1:

    ==============  =====================================================
    exponential     min(max_delay, initial_delay · factorⁿ⁻¹) · U
    fixed           initial_delay · U
    immediate       0
    ==============  =====================================================

    where U is random, between jitter_min and jitter_max. The delays are timedeltas or
    numbers of seconds. With immediate_after_timeout, a retry after a timeout does
    not wait.
    """

    backoff: str
    initial_delay: Duration = 0
    factor: float = 1.0
    max_delay: Duration = 0
    jitter_min: float = 0.9
    jitter_max: float = 1.1
    immediate_after_timeout: bool = False

    def __post_init__(self) -> None:
        if self.backoff not in _BACKOFFS:
            raise ValueError(f"backoff {self.backoff!r} is not one of {', '.join(_BACKOFFS)}")
        if self.backoff == "immediate":
            return
        initial = bounded("initial_delay", self.initial_delay)
        if not 0 <= self.jitter_min <= self.jitter_max < math.inf:
            raise ValueError(f"jitter window {self.jitter_min}..{self.jitter_max} is not 0 ≤ min ≤ max")
        if self.backoff == "fixed":
            return
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"factor {self.factor} is not 1 or more")
        if bounded("max_delay", self.max_delay) < initial:
            raise ValueError(f"max_delay {self.max_delay} is below initial_delay {self.initial_delay}")

    def wire(self) -> pb.Retry:
        sent = pb.Retry(backoff=_BACKOFFS[self.backoff], at_once_after_timeout=self.immediate_after_timeout)
        if self.backoff != "immediate":
            sent.base_ms = bounded("initial_delay", self.initial_delay)
            sent.jitter_min, sent.jitter_max = self.jitter_min, self.jitter_max
        if self.backoff == "exponential":
            sent.factor, sent.cap_ms = self.factor, bounded("max_delay", self.max_delay)
        return sent


def exponential_backoff(initial_delay: Duration, factor: float, max_delay: Duration) -> RetryPolicy:
    """Waits initial_delay, then initial_delay · factor, initial_delay · factor² and so
    on, up to max_delay. Each wait is random within 10 % of that."""
    return RetryPolicy("exponential", initial_delay, factor, max_delay)


def fixed_backoff(delay: Duration) -> RetryPolicy:
    """Waits the same time before each retry, random within 10 % of the delay."""
    return RetryPolicy("fixed", delay)


def immediate_retry() -> RetryPolicy:
    """Retries without a wait."""
    return RetryPolicy("immediate")
