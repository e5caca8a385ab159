"""What waits to be sent."""

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
"""How many log records may wait, of all attempts and of one. An attempt above its
limit drops its oldest record; above the limit for all, new records are dropped.
Drops are counted. The orchestrator keeps no more of an attempt than this."""

FULL_MESSAGE = 1 << 20
"""How many bytes a message is filled with. A larger item gets a message of its own."""

ITEM_OVERHEAD = 128
"""An upper bound for what an item takes in a message besides its texts."""


class Notes:
    """What an attempt has reported and the outbox has not sent yet. The outbox's lock
    guards it."""

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
    """Collects what to send while the last messages are being sent. Adding never waits.
    It stays small when nobody reads: it keeps the last progress and checkpoint of each
    attempt, and a limited number of log records."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._logs = 0  # records that wait
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
        """Adds a record, unless too many wait already."""
        notes = attempt.notes
        with self._changed:
            if self._closed:
                return
            if notes.ended:
                record.handle = 0  # the attempt has ended
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
        """Adds the outcome, the last thing that an attempt reports."""
        with self._changed:
            attempt.notes.ended = True
            if not self._closed:
                self._outcomes.append(ended)
                self._changed.notify()

    def deliver(self) -> Iterator[pb.WorkResponse]:
        """Yields messages until the outbox is closed and empty."""
        while messages := self._collect():
            yield from messages

    def close(self) -> None:
        """Makes deliver end when everything is sent. Nothing can be added afterwards."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _collect(self) -> list[pb.WorkResponse]:
        """Waits for something to send. It returns no message when none will follow."""
        with self._changed:
            while not (self._noted or self._outcomes):
                if self._closed:
                    return []
                self._changed.wait()
            cutter = _Cutter()
            for attempt in self._noted:
                cutter.add_notes(attempt.handle, attempt.notes)
                attempt.notes.clear()
            # Outcomes come last: nothing of an attempt may follow its outcome.
            for ended in self._outcomes:
                cutter.room(_size(ended)).outcomes.append(ended)
            self._logs, self._noted, self._outcomes = 0, [], []
        return cutter.messages


class _Cutter:
    """Packs items into messages."""

    def __init__(self) -> None:
        self.messages: list[pb.WorkResponse] = []
        self._filled = 0  # bytes in the last message

    def room(self, size: int) -> pb.WorkResponse:
        """A message with room for an item of this many bytes."""
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
        return ended.succeeded.ByteSize()
    if kind == "failed":
        return ended.failed.ByteSize()
    return 0
