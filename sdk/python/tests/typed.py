"""What a type checker sees of handlers. It is checked, not run."""

from dataclasses import dataclass
from typing import Any, TypedDict

from typing_extensions import assert_type

import holdfast


@dataclass
class Letter:
    to: str


class Options(TypedDict):
    width: int


@holdfast.handler("PRINT", timeout=5, retry=holdfast.exponential_backoff(1, 2, 60))
def print_letter(job: holdfast.Job[Letter]) -> int:
    assert_type(job.payload, Letter)
    assert_type(job.payload.to, str)
    return 1


@holdfast.handler("SET", terms=holdfast.Terms(concurrency_key="/id", key_class="host", fairness_key="/user"))
async def configure(job: holdfast.Job[Options]) -> str:
    assert_type(job.payload["width"], int)
    return ""


@holdfast.handler("ANY")
def anything(job: holdfast.Job[Any]) -> None:
    job.payload["what"]


assert_type(print_letter(holdfast.Job(Letter("me"))), int)


async def test() -> None:
    assert_type(await configure(holdfast.Job(Options(width=1))), str)


print_letter(holdfast.Job(1))  # type: ignore[arg-type]
job: holdfast.Job[Letter] = holdfast.Job(Letter("me"))
job.payload.nobody  # type: ignore[attr-defined]


def main() -> None:
    holdfast.serve(print_letter, configure, anything, version="1", concurrency=2)
