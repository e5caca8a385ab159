"""Times in the protocol."""

from __future__ import annotations

from datetime import datetime, timezone


def rfc3339(timestamp: float) -> str:
    """A Unix time in seconds, in UTC."""
    return datetime.fromtimestamp(timestamp, timezone.utc).isoformat(timespec="microseconds")


def parse(text: str) -> datetime | None:
    """The time; None if the text is not one."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
