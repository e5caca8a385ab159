"""How long a job waits between attempts."""

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
    exponential     min(cap, base · factorⁿ⁻¹) · U(jitter_min, jitter_max)
    fixed           base · U(jitter_min, jitter_max)
    immediate       0
    ==============  =====================================================

    where U is uniform. base and cap are timedeltas, or numbers of seconds.
    at_once_after_timeout retries an attempt that timed out without a wait.
    """

    backoff: str
    base: Duration = 0
    factor: float = 1.0
    cap: Duration = 0
    jitter_min: float = 0.9
    jitter_max: float = 1.1
    at_once_after_timeout: bool = False

    def __post_init__(self) -> None:
        if self.backoff not in _BACKOFFS:
            raise ValueError(f"backoff {self.backoff!r} is not one of {', '.join(_BACKOFFS)}")
        if self.backoff == "immediate":
            return
        base = bounded("base", self.base)
        if not 0 <= self.jitter_min <= self.jitter_max < math.inf:
            raise ValueError(f"jitter window {self.jitter_min}..{self.jitter_max} is not 0 ≤ min ≤ max")
        if self.backoff == "fixed":
            return
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"factor {self.factor} is not 1 or more")
        if bounded("cap", self.cap) < base:
            raise ValueError(f"cap {self.cap} is below base {self.base}")

    def wire(self) -> pb.Retry:
        sent = pb.Retry(backoff=_BACKOFFS[self.backoff], at_once_after_timeout=self.at_once_after_timeout)
        if self.backoff != "immediate":
            sent.base_ms = bounded("base", self.base)
            sent.jitter_min, sent.jitter_max = self.jitter_min, self.jitter_max
        if self.backoff == "exponential":
            sent.factor, sent.cap_ms = self.factor, bounded("cap", self.cap)
        return sent


def exponential_backoff(base: Duration, factor: float, cap: Duration) -> RetryPolicy:
    """Waits base, base · factor, base · factor² … up to cap, give or take a tenth."""
    return RetryPolicy("exponential", base, factor, cap)


def fixed_backoff(wait: Duration) -> RetryPolicy:
    """Waits the same time before each retry, give or take a tenth."""
    return RetryPolicy("fixed", wait)


def immediate_retry() -> RetryPolicy:
    """Does not wait."""
    return RetryPolicy("immediate")
