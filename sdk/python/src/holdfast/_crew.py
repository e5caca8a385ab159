"""Threads that run one function after another."""

from __future__ import annotations

import queue
import threading
from typing import Callable


class Crew:
    """Runs functions, each on a thread of its own as long as it takes. A thread
    that is done waits for another function. None of them keeps the process
    alive, and there is no bound: the orchestrator has one."""

    def __init__(self) -> None:
        self._next: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0
        """How many threads wait for a function, less the functions that wait for a
        thread."""

    def run(self, function: Callable[[], None]) -> None:
        """Runs the function at once, or as soon as a thread is free where the
        process may have no more of them. The function must not raise."""
        with self._lock:
            if self._free <= 0 and self._start(function):
                return
            self._free -= 1
        self._next.put(function)

    def _start(self, function: Callable[[], None]) -> bool:
        """Whether there could be a new thread for the function."""
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
            del function  # and what it holds, while the next is waited for
            with self._lock:
                self._free += 1
            function = self._next.get()
