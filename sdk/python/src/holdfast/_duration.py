"""Durations: a timedelta or a number of seconds."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Union

Duration = Union[timedelta, float, int]

LONGEST = timedelta(days=10 * 365)
"""The longest duration that the orchestrator accepts."""


def millis(duration: Duration) -> int:
    """The duration in whole milliseconds, kept between 0 and LONGEST."""
    if not isinstance(duration, timedelta):
        if isinstance(duration, bool) or not isinstance(duration, (int, float)):
            raise TypeError(f"{duration!r} is neither a timedelta nor a number of seconds")
        if not math.isfinite(duration):
            raise ValueError(f"a duration of {duration} s is not finite")
        duration = timedelta(seconds=min(max(duration, 0), LONGEST.total_seconds()))
    return max(min(duration, LONGEST), timedelta(0)) // timedelta(milliseconds=1)


def bounded(what: str, duration: Duration) -> int:
    """The duration of a setting in milliseconds. It raises ValueError for one that the
    orchestrator does not accept."""
    given = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if not isinstance(given, (int, float)) or not 0.001 <= given <= LONGEST.total_seconds():
        raise ValueError(f"{what} {duration!r} is not between 1 ms and 3650 days")
    return millis(duration)
