"""The jobs that came before a job of a workflow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterable

from . import handler_pb2 as pb
from ._errors import Permanent
from ._limits import CODE_RESULT_OMITTED, CODE_UNKNOWN_PREDECESSOR


@dataclass(frozen=True)
class Predecessor:
    """A job of the same workflow that had to end before this one could start."""

    name: str
    id: str = ""
    succeeded: bool = True
    """False if it was skipped or canceled."""
    result: Any = None
    """Decoded from JSON; None if it has none."""
    omitted: bool = False
    """It has a result, which the orchestrator has left out: all results together are too
    large."""


def predecessors_of(sent: Iterable[pb.Predecessor]) -> tuple[Predecessor, ...]:
    return tuple(
        Predecessor(p.name, p.job_id, p.succeeded, json.loads(p.result) if p.result else None, p.omitted) for p in sent
    )


def result_of(predecessors: Iterable[Predecessor], name: str, default: Any) -> Any:
    for before in predecessors:
        if before.name != name:
            continue
        if before.omitted:
            raise Permanent(
                f"the result of {name} was left out: all results together are too large", code=CODE_RESULT_OMITTED
            )
        return default if before.result is None or not before.succeeded else before.result
    raise Permanent(f"no job before this one has the name {name!r}", code=CODE_UNKNOWN_PREDECESSOR)
