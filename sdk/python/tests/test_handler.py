"""Handlers without an orchestrator: called by tests, and refused when they are wrong."""

import asyncio
import unittest
from datetime import timedelta

import holdfast
from holdfast import Job, Permanent, Reason, RetryAfter, RetryPolicy, Snooze, Stopped, Terms, handler


@handler("SOME", timeout=timedelta(minutes=2))
def some(job: Job):
    """Some."""
    job.progress({"at": 1})
    job.checkpoint(2)
    job.log.info("said", extra={"n": 1})
    job.raise_if_canceled()
    return job.resume("none"), job.payload, job.attempt


class JobTest(unittest.TestCase):
    def test_a_handler_is_called_like_its_function(self):
        self.assertEqual(("none", {"a": 1}, 1), some(Job({"a": 1})))
        self.assertEqual("Some.", some.__doc__)

    def test_a_test_chooses_checkpoint_and_attempt(self):
        self.assertEqual((7, None, 3), some(Job(None, checkpoint=7, attempt=3)))

    def test_a_coroutine_function_is_awaited(self):
        @handler("LATER")
        async def later(job: Job):
            return job.payload

        self.assertEqual(1, asyncio.run(later(Job(1))))

    def test_the_log_goes_to_pythons_logging(self):
        with self.assertLogs("holdfast.job") as logs:
            some(Job())
        self.assertEqual(1, logs.records[0].n)

    def test_the_first_reason_to_stop_counts(self):
        stopped = Job()
        self.assertFalse(stopped.wait(0))
        stopped.stop(Reason.SHUTDOWN)
        stopped.stop(Reason.CANCELED)
        self.assertTrue(stopped.canceled)
        self.assertIs(Reason.SHUTDOWN, stopped.cancel_reason)
        self.assertTrue(stopped.wait(60))
        with self.assertRaises(Stopped) as raised:
            some(stopped)
        self.assertIs(Reason.SHUTDOWN, raised.exception.reason)

    def test_time_left_counts_down_from_the_timeout(self):
        self.assertEqual(float("inf"), Job().time_left)
        self.assertTrue(0 < Job(timeout=60).time_left <= 60)
        self.assertEqual(0, Job(timeout=-1).time_left)

    def test_what_is_not_json_is_refused(self):
        for value in (object(), float("nan"), "half \ud800"):
            with self.assertRaises((TypeError, ValueError)):
                Job().progress(value)


class ErrorsTest(unittest.TestCase):
    def test_durations_are_timedeltas_or_seconds(self):
        self.assertEqual(2000, Snooze(timedelta(seconds=2)).retry_after_ms)
        self.assertEqual(1500, RetryAfter(1.5).retry_after_ms)
        self.assertEqual(0, RetryAfter(-1).retry_after_ms)

    def test_failures_have_a_code(self):
        error = Permanent("no", code="x")
        self.assertTrue(error.permanent)
        self.assertEqual(("x", "no"), (error.code, str(error)))


class RefusedTest(unittest.TestCase):
    def refused(self, words, make, *args, **options):
        with self.assertRaises((TypeError, ValueError)) as raised:
            make(*args, **options)
        self.assertIn(words, str(raised.exception))

    def test_handlers(self):
        def make(job_type="SOME", function=some.function, **options):
            handler(job_type, **options)(function)

        for words, options in {
            "is not a text, or empty": {"job_type": ""},
            "contains a character that cannot be printed": {"job_type": "A\nB"},
            "longer than 200 bytes": {"job_type": "ü" * 101},
            "job type 'SOME': 7 is not a function": {"function": 7},
            "timeout 0 is not between": {"timeout": 0},
            "max_attempts True is not an integer between 1 and 1000000": {"max_attempts": True},
            "concurrency 10001": {"concurrency": 10_001},
            "neither a mapping nor a bool": {"schema": [1]},
            "the schema is longer than": {"schema": {"description": "x" * (256 << 10)}},
            "is not a RetryPolicy": {"retry": 3},
            "description 'one\\ntwo' contains": {"description": "one\ntwo"},
            "terms {} is not Terms": {"terms": {}},
        }.items():
            with self.subTest(words):
                self.refused(words, make, **options)

    def test_retry_policies(self):
        self.refused("is not one of exponential, fixed, immediate", RetryPolicy, "linear")
        self.refused("max_delay 1 is below initial_delay 2", holdfast.exponential_backoff, 2, 3, 1)
        self.refused("factor 0.5 is not 1 or more", holdfast.exponential_backoff, 1, 0.5, 2)
        self.refused("initial_delay 0 is not between", holdfast.fixed_backoff, 0)

    def test_terms(self):
        for words, terms in {
            "neither a concurrency_key nor a fairness_key": {},
            "concurrency_key 'id' is no JSON Pointer": {"concurrency_key": "id", "key_class": "a"},
            "fairness_key '/~2' is no JSON Pointer": {"fairness_key": "/~2"},
            "fairness_key 7 is no JSON Pointer": {"fairness_key": 7},
            "is longer than 1000 bytes": {"fairness_key": "/" + "ü" * 500},
            "key_class '' is empty": {"concurrency_key": "/id"},
            "key_class 'a:b' has a colon": {"concurrency_key": "/id", "key_class": "a:b"},
            "longer than 100 characters": {"concurrency_key": "/id", "key_class": "ü" * 101},
            "concurrency_limit 0 is not an integer": {"concurrency_key": "/id", "key_class": "a", "concurrency_limit": 0},
            "concurrency_limit True": {"concurrency_key": "/id", "key_class": "a", "concurrency_limit": True},
            "on_conflict 'fight' is not one of queue, cancel_newcomer, cancel_oldest": {
                "concurrency_key": "/id",
                "key_class": "a",
                "on_conflict": "fight",
            },
            "need a concurrency_key": {"fairness_key": "/id", "concurrency_limit": 1},
        }.items():
            with self.subTest(words):
                self.refused(words, Terms, **terms)

    def test_durations(self):
        self.refused("neither a timedelta nor a number", Snooze, "soon")

    def test_jobs_values(self):
        self.refused("not JSON serializable", Job().progress, object())


if __name__ == "__main__":
    unittest.main()
