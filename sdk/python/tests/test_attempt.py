"""Attempts, with a stand-in for the stream."""

import contextvars
import unittest
from dataclasses import dataclass
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


if __name__ == "__main__":
    unittest.main()
