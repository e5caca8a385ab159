"""The plugin process, which an orchestrator starts."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import Any, NoReturn, Sequence

from . import handler_pb2 as pb
from ._handler import Handler, check_count, check_text
from ._limits import (
    COOKIE_KEY,
    COOKIE_VALUE,
    EXIT_ABANDONED,
    EXIT_DRAINED,
    EXIT_UNUSABLE,
    MAX_CONCURRENCY,
    MAX_VERSION_BYTES,
    PROTOCOL_VERSION,
)
from ._log import log_to_stream
from ._server import Server
from ._tracing import set_up

LAST_WORDS = 2.0
"""How long, in seconds, the server may take to send its last message."""


def serve(*handlers: Handler[Any, Any], version: str = "unknown", concurrency: int | None = None) -> NoReturn:
    """Serves the handlers to the orchestrator that started this process. It does not
    return. version is the plugin's version, for people. concurrency is how many
    attempts each process runs at once; the orchestrator's configuration overrides it.

    From now on, standard output goes to standard error, so a print cannot disturb the
    protocol. The process ignores SIGINT and SIGTERM: the orchestrator stops it. It ends
    when its standard input is closed, because then the orchestrator is gone.

    If you start the program by hand, it says what it is and exits with 1.
    """
    program = os.path.basename(sys.argv[0])
    try:
        manifest, by_type = _assemble(handlers, version, concurrency)
    except (TypeError, ValueError) as error:
        sys.exit(f"{program}: {error}")
    if os.environ.get(COOKIE_KEY) != COOKIE_VALUE:
        _introduce(program, manifest)
        sys.exit(EXIT_UNUSABLE)
    sockets = os.environ.get("PLUGIN_UNIX_SOCKET_DIR")
    if not sockets:
        sys.exit(f"{program}: PLUGIN_UNIX_SOCKET_DIR is not set")
    process = _Process()
    asyncio.run(process.run(manifest, by_type, sockets))
    sys.exit(EXIT_DRAINED)


def _assemble(
    handlers: Sequence[Handler[Any, Any]], version: str, concurrency: int | None
) -> tuple[pb.DescribeResponse, dict[str, Handler[Any, Any]]]:
    check_text("the version", version, MAX_VERSION_BYTES)
    manifest = pb.DescribeResponse(version=version)
    if concurrency is not None:
        manifest.concurrency = check_count("concurrency", concurrency, MAX_CONCURRENCY)
    by_type: dict[str, Handler[Any, Any]] = {}
    for each in handlers:
        if not isinstance(each, Handler):
            raise TypeError(f"{each!r} is not a handler; use @holdfast.handler(…)")
        if each.job_type in by_type:
            raise ValueError(f"job type {each.job_type!r} has two handlers")
        by_type[each.job_type] = each
        manifest.job_types.append(each.wire())
    if not by_type:
        raise ValueError("there is no handler to serve")
    return manifest, by_type


class _Process:
    """The standard streams, the signals and the end of a plugin process."""

    def __init__(self) -> None:
        self._drained = threading.Event()
        self._handshake = _divert(1, onto=2)
        with open(os.devnull) as nothing:
            self._lifeline = _divert(0, onto=nothing.fileno())
        os.set_blocking(self._lifeline, True)
        # Python buffers standard output when it is a pipe. Print line by line.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(line_buffering=True)
        # A no-op, not SIG_IGN: child processes of handlers would inherit that.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        threading.Thread(target=self._end_with_stdin, name="holdfast-stdin", daemon=True).start()

    async def run(self, manifest: pb.DescribeResponse, handlers: dict[str, Handler[Any, Any]], sockets: str) -> None:
        """Serves until the orchestrator has drained the process."""
        log_to_stream()
        set_up()
        loop, left = asyncio.get_running_loop(), asyncio.Event()

        def drained() -> None:
            self._drained.set()
            loop.call_soon_threadsafe(left.set)

        server = Server(manifest, handlers, loop, drained, self._exit)
        self._shake_hands(server.start(sockets))
        await left.wait()
        server.stop(LAST_WORDS)

    def _shake_hands(self, path: str) -> None:
        with os.fdopen(self._handshake, "w") as out:
            out.write(f"1|{PROTOCOL_VERSION}|unix|{path}|grpc\n")

    def _end_with_stdin(self) -> None:
        """Ends the process when the orchestrator closes standard input: after a drain,
        when it has received everything, or because it is gone."""
        while os.read(self._lifeline, 1 << 16):
            pass
        if self._drained.is_set():
            os._exit(EXIT_DRAINED)
        self._exit("the orchestrator is gone")

    def _exit(self, why: str) -> NoReturn:
        """Ends the process at once, and says why."""
        try:
            os.write(2, f"plugin process ends: {why}\n".encode())
        finally:
            os._exit(EXIT_ABANDONED)


def _divert(descriptor: int, onto: int) -> int:
    """Redirects the descriptor to another one, for child processes too. It returns what
    the descriptor was, as one that only this process has."""
    aside = os.dup(descriptor)
    os.dup2(onto, descriptor)
    return aside


def _introduce(program: str, manifest: pb.DescribeResponse) -> None:
    """Says what the program is to someone who started it by hand."""
    types = "".join(f"  {declared.name}\n" for declared in manifest.job_types)
    print(
        f"""This is a Holdfast plugin, version {manifest.version}. It has handlers for the job types

{types}
An orchestrator starts it; you do not run it by hand. Add it to config.yaml:

  plugins:
    - name: {os.path.splitext(program)[0]}
      path: {os.path.abspath(sys.argv[0])}

Start the orchestrator with "orchestrator serve --config config.yaml". Then submit
a job:

  curl localhost:8080/jobs -H 'Content-Type: application/json' \\
    -d '{{"jobType": "{manifest.job_types[0].name}", "payload": {{}}}}'""",
        file=sys.stderr,
    )
