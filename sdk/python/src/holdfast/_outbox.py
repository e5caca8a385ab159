"""What is to be sent."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Iterator

from . import handler_pb2 as pb
from ._time import rfc3339

if TYPE_CHECKING:
    from ._attempt import Attempt

MAX_LOGS = 1000
MAX_LOGS_OF_ONE = 200
"""How many log records wait for the orchestrator to read them, of all attempts and
of one. Of an attempt the last ones wait, as many as the orchestrator keeps; beyond
that, and beyond what all may have, records are dropped and counted."""

FULL_MESSAGE = 1 << 20
"""The size, in bytes, from which on a message takes nothing more; a larger item
goes alone."""

ITEM_OVERHEAD = 128
"""More than an item takes on the wire beside its texts."""


class Notes:
    """What an attempt has last reported of itself and is not sent yet; guarded
    by the outbox."""

    __slots__ = ("ended", "listed", "progress", "checkpoint", "logs", "dropped")

    def __init__(self) -> None:
        self.ended = False
        self.clear()

    def clear(self) -> None:
        self.listed = False
        self.progress: bytes | None = None
        self.checkpoint: bytes | None = None
        self.logs: deque[pb.Log] | None = None
        self.dropped = 0


class Outbox:
    """Gathers what is to be sent while the last messages are on their way. It
    never makes anybody wait, and stays small when nobody reads: of what a
    handler reports again and again only the last is kept, of logs a number."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._logs = 0  # that wait
        self._noted: list[Attempt] = []
        self._outcomes: list[pb.Outcome] = []
        self._closed = False

    def progress(self, attempt: Attempt, encoded: bytes) -> None:
        with self._changed:
            self._check(attempt)
            attempt.notes.progress = encoded
            self._note(attempt)

    def checkpoint(self, attempt: Attempt, encoded: bytes) -> None:
        with self._changed:
            self._check(attempt)
            attempt.notes.checkpoint = encoded
            self._note(attempt)

    def log(self, attempt: Attempt, record: pb.Log) -> None:
        """Sends a record, unless too many of all attempts wait already."""
        notes = attempt.notes
        with self._changed:
            if self._closed:
                return
            if notes.ended:
                record.handle = 0  # it belongs to no attempt any more
            if notes.logs is None:
                notes.logs = deque()
            if len(notes.logs) >= MAX_LOGS_OF_ONE:
                notes.logs.popleft()
                notes.dropped += 1
            elif self._logs >= MAX_LOGS:
                notes.dropped += 1
                return
            else:
                self._logs += 1
            notes.logs.append(record)
            self._note(attempt)

    def _check(self, attempt: Attempt) -> None:
        if attempt.notes.ended or self._closed:
            raise RuntimeError("the attempt has ended")

    def _note(self, attempt: Attempt) -> None:
        if not attempt.notes.listed:
            attempt.notes.listed = True
            self._noted.append(attempt)
        self._changed.notify()

    def outcome(self, attempt: Attempt, ended: pb.Outcome) -> None:
        """Ends what the attempt has to say."""
        with self._changed:
            attempt.notes.ended = True
            if not self._closed:
                self._outcomes.append(ended)
                self._changed.notify()

    def deliver(self) -> Iterator[pb.WorkResponse]:
        """Message after message, until the outbox is closed and empty."""
        while messages := self._collect():
            yield from messages

    def close(self) -> None:
        """Lets deliver end once everything is sent. Nothing can be added any
        more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _collect(self) -> list[pb.WorkResponse]:
        """Waits for something to send. There is nothing when nothing will
        follow."""
        with self._changed:
            while not (self._noted or self._outcomes):
                if self._closed:
                    return []
                self._changed.wait()
            cutter = _Cutter()
            for attempt in self._noted:
                cutter.add_notes(attempt.handle, attempt.notes)
                attempt.notes.clear()
            # Outcomes come last, so that nothing of an attempt comes after its end.
            for ended in self._outcomes:
                cutter.room(_size(ended)).outcomes.append(ended)
            self._logs, self._noted, self._outcomes = 0, [], []
        return cutter.messages


class _Cutter:
    """Fills message after message."""

    def __init__(self) -> None:
        self.messages: list[pb.WorkResponse] = []
        self._filled = 0  # bytes in the last one

    def room(self, size: int) -> pb.WorkResponse:
        """A message that has room for an item of so many bytes."""
        size += ITEM_OVERHEAD
        if not self.messages or self._filled + size > FULL_MESSAGE:
            self.messages.append(pb.WorkResponse())
            self._filled = 0
        self._filled += size
        return self.messages[-1]

    def add_notes(self, handle: int, notes: Notes) -> None:
        records = notes.logs or ()
        for record in records:
            self.room(len(record.message) * 4 + len(record.attributes)).logs.append(record)
        if notes.dropped:
            text = f"{notes.dropped} log records were dropped"
            self.room(len(text)).logs.add(
                handle=records[-1].handle if records else handle,
                level=pb.Log.LEVEL_WARN,
                message=text,
                time=rfc3339(time.time()),
                dropped=notes.dropped,
            )
        if (value := notes.progress) is not None:
            self.room(len(value)).progress.add(handle=handle, progress=value)
        if (value := notes.checkpoint) is not None:
            self.room(len(value)).checkpoints.add(handle=handle, checkpoint=value)


def _size(ended: pb.Outcome) -> int:
    kind = ended.WhichOneof("result")
    if kind == "succeeded":
        return len(ended.succeeded.result)
    if kind == "failed":
        return ended.failed.ByteSize()
    return 0
