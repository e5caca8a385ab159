"""The largest values that the orchestrator takes."""

from __future__ import annotations

from typing import NamedTuple

from . import handler_pb2 as pb
from ._limits import MAX_VALUE_BYTES


class Caps(NamedTuple):
    """In bytes of JSON. An orchestrator that says nothing takes what a message
    holds."""

    progress: int = MAX_VALUE_BYTES
    checkpoint: int = MAX_VALUE_BYTES
    result: int = MAX_VALUE_BYTES

    @classmethod
    def of(cls, said: pb.DescribeRequest) -> Caps:
        sizes = (said.max_progress_bytes, said.max_checkpoint_bytes, said.max_result_bytes)
        return cls(*(min(size or MAX_VALUE_BYTES, MAX_VALUE_BYTES) for size in sizes))


def check_size(encoded: bytes, most: int) -> None:
    """Raises ValueError for a value above its cap."""
    if len(encoded) > most:
        raise ValueError(f"{len(encoded)} bytes of JSON are more than {most}")
