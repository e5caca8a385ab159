"""How jobs share with others."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import handler_pb2 as pb
from ._limits import MAX_CONCURRENCY_LIMIT, MAX_KEY_CLASS_CHARS, MAX_POINTER_BYTES

_CONFLICTS = {
    "": pb.Terms.ON_CONFLICT_UNSPECIFIED,
    "queue": pb.Terms.ON_CONFLICT_QUEUE,
    "cancel_newcomer": pb.Terms.ON_CONFLICT_CANCEL_NEWCOMER,
    "cancel_oldest": pb.Terms.ON_CONFLICT_CANCEL_OLDEST,
}


@dataclass(frozen=True)
class Terms:
    """Where in the payload a job's keys are, and what is shared by them.

    Each place is a JSON Pointer (RFC 6901), such as "/customer/id", to a string or a
    number. A job whose payload has no such value, or None there, has no key. What a
    submission says itself comes first.

    =================  ======================================================
    concurrency_key    place of what a job uses. With the class customer and the
                       value 42, its key is customer:42. Jobs of a tenant with
                       the same key share its limit, whatever their types
    key_class          what concurrency keys begin with; required with
                       concurrency_key
    concurrency_limit  how many jobs of the key may run when a job of this type
                       starts, itself included; by default the limit that
                       operators have set for the class
    on_conflict        what happens to a job if so many run: "queue" (it waits),
                       "cancel_newcomer" (it is canceled) or "cancel_oldest" (it
                       takes the place of the oldest, which is canceled)
    fairness_key       place of who takes a turn: waiting jobs run in turns of
                       their fairness keys
    =================  ======================================================
    """

    concurrency_key: str = ""
    key_class: str = ""
    concurrency_limit: int | None = None
    on_conflict: str = ""
    fairness_key: str = ""

    def __post_init__(self) -> None:
        if not self.concurrency_key and not self.fairness_key:
            raise ValueError("the terms name neither a concurrency_key nor a fairness_key")
        _check_place("concurrency_key", self.concurrency_key)
        _check_place("fairness_key", self.fairness_key)
        if self.on_conflict not in _CONFLICTS:
            raise ValueError(f"on_conflict {self.on_conflict!r} is not one of {', '.join(filter(None, _CONFLICTS))}")
        if not self.concurrency_key:
            if self.key_class or self.concurrency_limit is not None or self.on_conflict:
                raise ValueError("key_class, concurrency_limit and on_conflict need a concurrency_key")
            return
        if not isinstance(self.key_class, str) or not self.key_class.isprintable() or ":" in self.key_class:
            raise ValueError(f"key_class {self.key_class!r} has a colon or a character that cannot be printed")
        if not 1 <= len(self.key_class) <= MAX_KEY_CLASS_CHARS:
            raise ValueError(f"key_class {self.key_class!r} is empty or longer than {MAX_KEY_CLASS_CHARS} characters")
        if self.concurrency_limit is not None:
            limit = self.concurrency_limit
            if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_CONCURRENCY_LIMIT:
                raise ValueError(f"concurrency_limit {limit!r} is not an integer between 1 and {MAX_CONCURRENCY_LIMIT}")

    def wire(self) -> pb.Terms:
        return pb.Terms(
            concurrency_key=self.concurrency_key,
            key_class=self.key_class,
            concurrency_limit=self.concurrency_limit or 0,
            on_conflict=_CONFLICTS[self.on_conflict],
            fairness_key=self.fairness_key,
        )


def _check_place(what: str, pointer: str) -> None:
    if not isinstance(pointer, str) or not re.fullmatch("(/([^~/]|~[01])*)*", pointer) or not pointer.isprintable():
        raise ValueError(f"{what} {pointer!r} is no JSON Pointer, such as /customer/id")
    if len(pointer.encode()) > MAX_POINTER_BYTES:
        raise ValueError(f"{what} {pointer[:40]!r} is longer than {MAX_POINTER_BYTES} bytes")
