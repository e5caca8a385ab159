"""Threads that run functions."""

from __future__ import annotations

import queue
import threading
from typing import Callable


class Threads:
    """Runs each function on a thread of its own, and uses finished threads again. The
    threads do not keep the process alive. Their number has no limit here: the
    orchestrator limits how many attempts run."""

    def __init__(self) -> None:
        self._next: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0
        """How many threads wait for a function, less the functions that wait for a
        thread."""

    def run(self, function: Callable[[], None]) -> None:
        """Runs the function at once. Where the process can have no more threads, it
        waits for a free one. The function must not raise."""
        with self._lock:
            if self._free <= 0 and self._start(function):
                return
            self._free -= 1
        self._next.put(function)

    def _start(self, function: Callable[[], None]) -> bool:
        """Starts a thread for the function, and returns whether that worked."""
        try:
            threading.Thread(target=self._serve, args=(function,), name="holdfast-job", daemon=True).start()
        except RuntimeError:
            if self._threads == 0:
                raise
            return False
        self._threads += 1
        return True

    def _serve(self, function: Callable[[], None]) -> None:
        while True:
            function()
            del function  # frees what it refers to during the wait
            with self._lock:
                self._free += 1
            function = self._next.get()
