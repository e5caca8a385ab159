"""The gRPC server of a plugin process."""

from __future__ import annotations

import asyncio
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterator, Mapping

import grpc

from . import handler_pb2 as pb
from ._caps import Caps
from ._handler import Handler
from ._limits import MAX_MESSAGE_BYTES
from ._session import Session
from ._tracing import flush

RPC_THREADS = 4
"""One for the stream, the others for the manifest and for health. Handlers run on other
threads, so the process answers health checks however many jobs it runs."""

_SERVING = b"\x08\x01"
_NOT_SERVING = b"\x08\x02"
"""Each is a HealthCheckResponse of grpc.health.v1."""

_HEALTH_OF = (b"", b"\x0a\x06plugin")
"""A HealthCheckRequest for the whole server, and one for the service that the
orchestrator asks for."""


class Server:
    """Serves the protocol on a unix socket."""

    def __init__(
        self,
        manifest: pb.DescribeResponse,
        handlers: Mapping[str, Handler[Any, Any]],
        loop: asyncio.AbstractEventLoop,
        drained: Callable[[], None],
        exit: Callable[[str], None],
    ) -> None:
        self._manifest = manifest
        self._handlers = handlers
        self._loop = loop
        self._drained = drained
        self._exit = exit
        self._caps = Caps()
        self._session: Session | None = None
        self._server = grpc.server(
            ThreadPoolExecutor(RPC_THREADS, thread_name_prefix="holdfast-rpc"),
            handlers=[self._handler_service(), self._health_service()],
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ],
        )

    def start(self, directory: str) -> str:
        """Listens on a new socket in the directory and returns its path."""
        path = os.path.join(directory, f"handler-{uuid.uuid4().hex[:12]}")
        if not self._server.add_insecure_port(f"unix:{path}"):
            raise OSError(f"cannot listen on {path}")
        self._server.start()
        return path

    def stop(self, grace: float) -> None:
        """Takes no more calls, and waits for the running ones, at most for the grace, in
        seconds."""
        self._server.stop(grace).wait()

    def _describe(self, request: pb.DescribeRequest, _context: grpc.ServicerContext) -> pb.DescribeResponse:
        self._caps = Caps.of(request)
        return self._manifest

    def _work(self, requests: Iterator[pb.WorkRequest], context: grpc.ServicerContext) -> Iterator[pb.WorkResponse]:
        self._session = session = Session(self._handlers, self._loop, self._exit, self._caps)
        yield from session.work(requests, context)
        if session.is_drained:
            flush()
            self._drained()

    def _check(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if request not in _HEALTH_OF:
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        # Without its stream the process is of no use.
        lost = self._session is not None and self._session.is_lost
        return _NOT_SERVING if lost else _SERVING

    def _handler_service(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            "holdfast.handler.v1.Handler",
            {
                "Describe": grpc.unary_unary_rpc_method_handler(
                    self._describe, pb.DescribeRequest.FromString, pb.DescribeResponse.SerializeToString
                ),
                "Work": grpc.stream_stream_rpc_method_handler(
                    self._work, pb.WorkRequest.FromString, pb.WorkResponse.SerializeToString
                ),
            },
        )

    def _health_service(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(self._check)}
        )
