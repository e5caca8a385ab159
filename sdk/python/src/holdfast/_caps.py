"""The largest values that the orchestrator takes."""

from __future__ import annotations

from typing import NamedTuple

from . import handler_pb2 as pb
from ._limits import MAX_VALUE_BYTES


class Caps(NamedTuple):
    """In bytes of JSON. By default, what fits into a message."""

    progress: int = MAX_VALUE_BYTES
    checkpoint: int = MAX_VALUE_BYTES
    result: int = MAX_VALUE_BYTES

    @classmethod
    def of(cls, request: pb.DescribeRequest) -> Caps:
        sizes = (request.max_progress_bytes, request.max_checkpoint_bytes, request.max_result_bytes)
        return cls(*(min(size or MAX_VALUE_BYTES, MAX_VALUE_BYTES) for size in sizes))


def check_size(encoded: bytes, most: int) -> None:
    """Raises ValueError for a value above its cap."""
    if len(encoded) > most:
        raise ValueError(f"{len(encoded)} bytes of JSON are more than {most}")
