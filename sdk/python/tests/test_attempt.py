"""Attempts, with a stand-in for the stream."""

import contextvars
import json
import unittest
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

from holdfast import Job, Permanent, handler
from holdfast import handler_pb2 as pb
from holdfast._attempt import Attempt
from holdfast._caps import Caps


@dataclass
class Letter:
    to: str


@handler("PRINT")
def print_letter(job: Job[Letter]):
    if job.payload.to == "nobody":
        raise Permanent("no address", code="no_address")
    return job.payload


def outcome(payload, which=print_letter, **caps):
    ended = []
    session = SimpleNamespace(
        caps=Caps(**caps),
        context=contextvars.copy_context(),
        finish=lambda attempt, outcome: ended.append(outcome),
    )
    start = pb.Start(handle=1, job_type="PRINT", payload=payload, timeout_ms=60_000, lease_ms=60_000)
    Attempt(start, which, session).perform()
    return ended[0]


@handler("JOIN")
def join(job: Job):
    return [job.result_of("rows"), job.result_of("none", 7), [p.name for p in job.predecessors]]


@handler("ASK")
def ask(job: Job):
    return job.result_of(job.payload)


class PredecessorTest(unittest.TestCase):
    before = [
        pb.Predecessor(name="rows", job_id="1", succeeded=True, result=b'{"n": 3}'),
        pb.Predecessor(name="none", job_id="2"),
        pb.Predecessor(name="large", job_id="3", succeeded=True, omitted=True),
    ]

    def outcome(self, which, payload=b"null"):
        ended = []
        session = SimpleNamespace(
            caps=Caps(), context=contextvars.copy_context(), finish=lambda attempt, outcome: ended.append(outcome)
        )
        start = pb.Start(
            handle=1, job_type="JOIN", payload=payload, timeout_ms=60_000, lease_ms=60_000, predecessors=self.before
        )
        Attempt(start, which, session).perform()
        return ended[0]

    def test_a_handler_reads_the_results_of_the_jobs_before(self):
        self.assertEqual(json.loads(self.outcome(join).succeeded.result), [{"n": 3}, 7, ["rows", "none", "large"]])

    def test_what_cannot_be_read_fails_for_good(self):
        for name, code in {"large": "result_omitted", "nobody": "unknown_predecessor"}.items():
            failed = self.outcome(ask, json.dumps(name).encode()).failed
            self.assertEqual((failed.code, failed.permanent), (code, True))


class AttemptTest(unittest.TestCase):
    def test_a_typed_payload_in_and_out(self):
        self.assertEqual(b'{"to":"Ada"}', outcome(b'{"to": "Ada"}').succeeded.result)

    def test_a_payload_that_does_not_fit_fails_permanently(self):
        for payload, message in {
            b'{"to": 7}': "payload: to: 7 is not text",
            b"null": "payload: null is not an object",
            b"{": "payload: Expecting property name",
        }.items():
            failed = outcome(payload).failed
            self.assertEqual(("bad_payload", True), (failed.code, failed.permanent))
            self.assertIn(message, failed.message)

    def test_an_error_decides_the_outcome(self):
        failed = outcome(b'{"to": "nobody"}').failed
        self.assertEqual(("no_address", True, "no address", ""), (failed.code, failed.permanent, failed.message, failed.stack))

    def test_a_result_above_its_cap_is_refused(self):
        self.assertEqual("result_too_large", outcome(b'{"to": "Ada"}', result=5).failed.code)

    def test_a_job_type_without_a_handler_is_not_permanent(self):
        failed = outcome(b"null", which=None).failed
        self.assertEqual(("unknown_type", False), (failed.code, failed.permanent))

    def test_follow_ups_are_sent_with_the_success(self):
        @handler("PRINT")
        def parent(job):
            job.submit("CHILD", {"n": 1})
            job.submit(
                "CHILD",
                [1],
                key="k",
                priority=-3,
                run_at=datetime(2030, 1, 31, 12, tzinfo=timezone.utc),
                delay=timedelta(minutes=1.5),
                hold=True,
                max_attempts=2,
                timeout=60,
                tags=["t"],
                concurrency_key="c:1",
                concurrency_limit=4,
                on_conflict="queue",
                fairness_key="f",
                expires_at=datetime(2030, 2, 1, tzinfo=timezone.utc),
                ttl=3600,
                unique_for=3600,
                unique_while_open=True,
                unique_by=["/x"],
                callback_url="https://example.com/hook",
            )

        sent = [json.loads(one) for one in outcome(b"null", parent, follow_ups=2).succeeded.follow_ups]
        self.assertEqual({"jobType": "CHILD", "payload": {"n": 1}}, sent[0])
        self.assertEqual(
            {
                "jobType": "CHILD", "payload": [1], "idempotencyKey": "k", "priority": -3,
                "runAt": "2030-01-31T12:00:00+00:00", "delay": "90000ms", "hold": True, "maxAttempts": 2, "timeout": "60000ms",
                "tags": ["t"], "concurrencyKey": "c:1", "concurrencyLimit": 4, "onConflict": "queue", "fairnessKey": "f",
                "expiresAt": "2030-02-01T00:00:00+00:00", "ttl": "3600000ms", "uniqueFor": "3600000ms", "uniqueWhile": "open",
                "uniqueBy": ["/x"], "callbackUrl": "https://example.com/hook",
            },
            sent[1],
        )  # fmt: skip

    def test_only_a_success_has_follow_ups(self):
        @handler("PRINT")
        def parent(job):
            job.submit("CHILD")
            raise Permanent("no")

        ended = outcome(b"null", parent, follow_ups=2)
        self.assertEqual("failed", ended.WhichOneof("result"))

    def test_what_cannot_be_submitted_is_refused_at_once(self):
        def attempt(*jobs, **caps):
            @handler("PRINT")
            def parent(job):
                for one in jobs:
                    job.submit(*one)

            return outcome(b"null", parent, **caps).failed

        failed = attempt(["A"], ["A"], follow_ups=1)
        self.assertEqual(("followups_too_large", True), (failed.code, failed.permanent))
        self.assertEqual("submit: 2 follow-ups are more than 1", failed.message)
        failed = attempt(["A", "x" * 100], follow_ups=1, follow_up_bytes=100)
        self.assertEqual(("followups_too_large", True), (failed.code, failed.permanent))
        failed = attempt(["A"])
        self.assertIn("too old to accept follow-ups", failed.message)
        self.assertFalse(failed.permanent)
        self.assertIn("no job type", attempt([""], follow_ups=1).message)
        self.assertIn("not JSON serializable", attempt(["A", object()], follow_ups=1).message)
        with self.assertRaisesRegex(ValueError, "has no time zone"):
            Job().submit("A", run_at=datetime(2030, 1, 31))

    def test_nobody_submits_after_the_end(self):
        kept = []
        outcome(b"null", handler("PRINT")(kept.append), follow_ups=1)
        with self.assertRaisesRegex(RuntimeError, "the attempt has ended"):
            kept[0].submit("CHILD")

    def test_a_job_of_a_test_keeps_what_is_submitted(self):
        job = Job()
        job.submit("CHILD", Letter("Ada"), tags=("a", "b"))
        self.assertEqual([{"jobType": "CHILD", "payload": {"to": "Ada"}, "tags": ["a", "b"]}], job.submitted)


if __name__ == "__main__":
    unittest.main()
