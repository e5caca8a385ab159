"""The test plugin: the payload says what to do."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time

import holdfast

if "noise" in sys.argv:
    print("loading | 1 | 2", flush=True)
    os.write(1, b"no end here ")

logging.basicConfig(handlers=[holdfast.LogHandler()], level=logging.INFO)


def facts(job):
    return {
        "id": job.id,
        "type": job.type,
        "tenant": job.tenant,
        "attempt": job.attempt,
        "maxAttempts": job.max_attempts,
        "fence": job.fence,
        "createdAt": job.created_at.isoformat(),
        "rawPayload": job.raw_payload.decode(),
        "payload": job.payload,
        "traceparent": job.traceparent,
        "baggage": job.baggage,
        "resumed": job.resume(),
    }


def bare(error):
    raise error


def report(job):
    for n in range(job.payload["n"]):
        job.progress({"n": n})
        job.checkpoint({"n": n, "pad": "x" * job.payload.get("pad", 0)})


def submit(job):
    for n in range(job.payload["n"]):
        job.submit("CHILD", {"n": n}, delay=1.5, tags=["child"])
    if job.payload.get("fail"):
        raise ValueError("failed after it has submitted")


def log(job):
    for n in range(job.payload.get("n", 1)):
        job.log.info("a line", extra={"n": n, "text": "Grüße, 世界"})
    job.log.error("a wrong\ud800 line", extra={"object": object(), "nan": float("nan")})
    logging.getLogger("library").warning("from a library")


def noise(job):
    print("printed")
    os.write(1, b"written past the language\n")
    subprocess.run(["echo", "by a child"], check=True)
    print("x" * 560_000, end="")


def child(job):
    started = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
    job.progress(started.pid)
    job.wait(60)


def stop(job):
    """Waits for its stop, logs the reason, and ends as the payload says."""
    job.progress("waiting")
    job.wait(60)
    print("asked to stop:", job.cancel_reason)
    job.log.info("asked to stop", extra={"why": str(job.cancel_reason)})
    if job.payload.get("how") == "succeed":
        return "all the same"
    if job.payload.get("how") == "permanent":
        raise holdfast.Permanent("late")
    job.raise_if_canceled()


def ignore(job):
    job.progress("waiting")
    while True:
        time.sleep(0.01)


def spin(job):
    job.progress("spinning")
    time.sleep(0.1)  # so that it is sent
    while True:
        pass


def stray_thread(job):
    threading.Thread(target=lambda: bare(RuntimeError("stray"))).start()
    time.sleep(0.1)


DO = {
    "echo": lambda job: job.payload.get("value"),
    "size": lambda job: len(job.payload["value"]),
    "big": lambda job: "x" * job.payload["n"],
    "facts": facts,
    "error": lambda job: bare(RuntimeError("out of paper")),
    "odd": lambda job: sys.exit(7),
    "permanent": lambda job: bare(holdfast.Permanent("no printer", code="no_printer")),
    "retry-after": lambda job: bare(holdfast.RetryAfter(1.5, "busy", code="busy")),
    "both": lambda job: bare(holdfast.Failure("both", permanent=True, retry_after=2, code="both")),
    "group": lambda job: bare(ExceptionGroup("several", [ValueError("a"), holdfast.Permanent("b", code="b")])),
    "snooze": lambda job: bare(holdfast.Snooze(2.5)),
    "cancel": lambda job: bare(holdfast.Cancel("not needed")),
    "bad-result": lambda job: float("nan"),
    "bad-text": lambda job: bare(RuntimeError("a\0b\ud800c")),
    "report": report,
    "submit": submit,
    "log": log,
    "noise": noise,
    "child": child,
    "stop": stop,
    "ignore": ignore,
    "spin": spin,
    "sleep": lambda job: time.sleep(job.payload["seconds"]),
    "stray": stray_thread,
    "environment": lambda job: dict(os.environ),
}


@holdfast.handler(
    "TEST",
    schema={"type": "object", "required": ["do"], "properties": {"do": {"type": "string"}}},
    timeout=90,
    retry=holdfast.exponential_backoff(2, 3, 60),
    max_attempts=7,
    description="Does what its payload says.",
    terms=holdfast.Terms(
        concurrency_key="/customer/id",
        key_class="customer",
        concurrency_limit=3,
        on_conflict="cancel_oldest",
        fairness_key="/re~1gion",
    ),
)
def test(job):
    return DO[job.payload["do"]](job)


@holdfast.handler("LOOP")
async def loop(job):
    """Like TEST, on the event loop."""
    match job.payload["do"]:
        case "stop":
            job.progress("waiting")
            try:
                await asyncio.sleep(60)
            finally:
                job.log.info("asked to stop", extra={"why": str(job.cancel_reason)})
        case "block":
            time.sleep(job.payload["seconds"])
        case "sleep":
            await asyncio.sleep(job.payload["seconds"])
        case _:
            return DO[job.payload["do"]](job)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["twice"]:
            holdfast.serve(test, test)
        case _:
            holdfast.serve(test, loop, version="9.9-test", concurrency=20)
