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
    follow_ups: int = 0
    """How many; 0 if the orchestrator takes none."""
    follow_up_bytes: int = MAX_VALUE_BYTES

    @classmethod
    def of(cls, request: pb.DescribeRequest) -> Caps:
        def size(sent: int) -> int:
            return min(sent or MAX_VALUE_BYTES, MAX_VALUE_BYTES)

        return cls(
            progress=size(request.max_progress_bytes),
            checkpoint=size(request.max_checkpoint_bytes),
            result=size(request.max_result_bytes),
            follow_ups=request.max_follow_ups,
            follow_up_bytes=size(request.max_follow_up_bytes),
        )


def check_size(size: int, most: int) -> None:
    """Raises ValueError for a value above its cap."""
    if size > most:
        raise ValueError(f"{size} bytes of JSON are more than {most}")
