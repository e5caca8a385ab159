"""What the SDK does without an orchestrator: handlers called by tests, and what it
says about mistakes."""

from datetime import timedelta

import holdfast
from holdfast import Job, Permanent, Reason, RetryAfter, RetryPolicy, Snooze, Stopped, handler


@handler("SOME", timeout=timedelta(minutes=2))
def some(job):
    """Some."""
    job.progress({"at": 1})
    job.checkpoint(2)
    job.log.info("said", extra={"n": 1})
    job.raise_if_cancelled()
    return job.resume("none"), job.payload, job.attempt


assert some(Job({"a": 1})) == ("none", {"a": 1}, 1)
assert some(Job(None, checkpoint=7, attempt=3)) == (7, None, 3)
assert some.__doc__ == "Some."

stopped = Job()
stopped.stop(Reason.SHUTDOWN)
stopped.stop(Reason.CANCELED)
assert stopped.cancelled and stopped.cancel_reason is Reason.SHUTDOWN and stopped.wait(60)
try:
    some(stopped)
    raise AssertionError("it goes on")
except Stopped as error:
    assert error.reason is Reason.SHUTDOWN

assert Snooze(timedelta(seconds=2)).retry_after_ms == 2000
assert RetryAfter(-1).retry_after_ms == 0
assert Permanent("no", code="x").permanent


def refused(words, make):
    try:
        make()
    except (TypeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


make = lambda job_type="SOME", function=some.function, **options: lambda: handler(job_type, **options)(function)
refused("is not a text, or empty", make(""))
refused("cannot be printed", make("A\nB"))
refused("longer than 200 bytes", make("ü" * 101))
refused("job type 'SOME': 7 is not a function", make(function=7))
refused("timeout 0 is not between", make(timeout=0))
refused("max_attempts True is not an integer between 1 and 1000000", make(max_attempts=True))
refused("concurrency 10001", make(concurrency=10_001))
refused("neither a mapping nor a bool", make(schema=[1]))
refused("the schema is longer than", make(schema={"description": "x" * (256 << 10)}))
refused("is not a RetryPolicy", make(retry=3))
refused("cannot be printed", make(description="one\ntwo"))
refused("is not one of exponential, fixed, immediate", lambda: RetryPolicy("linear"))
refused("cap 1 is below base 2", lambda: holdfast.exponential_backoff(2, 3, 1))
refused("factor 0.5 is not 1 or more", lambda: holdfast.exponential_backoff(1, 0.5, 2))
refused("base 0 is not between", lambda: holdfast.fixed_backoff(0))
refused("neither a timedelta nor a number", lambda: Snooze("soon"))
refused("not JSON serializable", lambda: Job().progress(object()))
print("done")
