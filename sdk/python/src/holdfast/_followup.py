"""Jobs that a handler submits."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Sequence

from ._caps import check_size
from ._duration import Duration, millis
from ._errors import FollowUpsTooLarge
from ._json import encode
from ._limits import CODE_FOLLOW_UPS_TOO_LARGE

if TYPE_CHECKING:
    from ._caps import Caps


def submission(
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
) -> dict[str, Any]:
    """The body of POST /jobs for the job. What is None is left out."""
    if not isinstance(type, str) or not type:
        raise ValueError(f"{type!r} is no job type")
    members = {
        "jobType": type,
        "payload": payload,
        "idempotencyKey": key,
        "priority": priority,
        "runAt": _instant(run_at),
        "delay": _duration(delay),
        "hold": hold,
        "maxAttempts": max_attempts,
        "timeout": _duration(timeout),
        "tags": None if tags is None else list(tags),
        "concurrencyKey": concurrency_key,
        "concurrencyLimit": concurrency_limit,
        "onConflict": on_conflict,
        "fairnessKey": fairness_key,
        "expiresAt": _instant(expires_at),
        "ttl": _duration(ttl),
        "uniqueFor": _duration(unique_for),
        "uniqueWhile": "open" if unique_while_open else None,
        "uniqueBy": None if unique_by is None else list(unique_by),
        "callbackUrl": callback_url,
    }
    return {name: value for name, value in members.items() if value is not None}


def _duration(duration: Duration | None) -> str | None:
    return None if duration is None else f"{millis(duration)}ms"


def _instant(time: datetime | None) -> str | None:
    if time is None:
        return None
    if time.tzinfo is None:
        raise ValueError(f"the time {time} has no time zone")
    return time.astimezone(timezone.utc).isoformat()


class FollowUps:
    """What an attempt has submitted. Any thread may add to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[bytes] = []
        self._bytes = 0
        self._ended = False

    def add(self, encoded: bytes, caps: Caps) -> None:
        with self._lock:
            if self._ended:
                raise RuntimeError("the attempt has ended")
            if caps.follow_ups == 0:
                raise RuntimeError("the orchestrator is too old to accept follow-ups")
            try:
                if len(self._all) == caps.follow_ups:
                    raise ValueError(f"{len(self._all) + 1} follow-ups are more than {caps.follow_ups}")
                check_size(self._bytes + len(encoded), caps.follow_up_bytes)
            except ValueError as error:
                raise FollowUpsTooLarge(f"submit: {error}", code=CODE_FOLLOW_UPS_TOO_LARGE) from error
            self._all.append(encoded)
            self._bytes += len(encoded)

    def end(self) -> list[bytes]:
        """All of them. None can be added from now on."""
        with self._lock:
            self._ended = True
            return self._all
