#!/usr/bin/env python3
"""The handler of a chaos run in Python: see ../main.go."""

import json
import os
import signal
import time

import holdfast

with open("/proc/self/stat", encoding="ascii") as stat:
    STARTED = int(stat.read().rpartition(")")[2].split()[19])


def leave(job, event, report=None):
    line = {
        "event": event,
        "jobId": job.id,
        "jobType": job.type,
        "mark": job.payload.get("mark"),
        "attempt": job.attempt,
        "fence": job.fence,
        "pid": os.getpid(),
        "pidStarted": STARTED,
        "at": time.time_ns(),
    }
    if report:
        line["report"] = report
    file = os.open(os.environ["EFFECTS"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
    finally:
        os.close(file)


@holdfast.handler("CHAOS_PYTHON")
def work(job):
    leave(job, "began")
    if job.wait(job.payload["millis"] / 1000):
        lost = job.cancel_reason == holdfast.Reason.LEASE_LOST
        canceled = job.cancel_reason == holdfast.Reason.CANCELED
        leave(job, "ended", "lost" if lost else "cancels" if canceled else "fails")
        job.raise_if_canceled()
    plan = job.payload.get("plan") or ["succeeds"]
    report = plan[min(job.attempt, len(plan)) - 1]
    if report == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if report == "fails":
        leave(job, "ended", report)
        raise RuntimeError("this attempt was to fail")
    if report == "permanent":
        leave(job, "ended", report)
        raise holdfast.Permanent("this job was to die")
    leave(job, "effect")
    leave(job, "ended", "succeeds")


if __name__ == "__main__":
    holdfast.serve(work)
