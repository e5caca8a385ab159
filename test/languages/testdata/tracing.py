"""Enters the span of an attempt as the SDK does, and prints a log record with it."""

import logging
import sys

from holdfast import _log, _tracing

_tracing.set_up()
_tracing.enter(sys.argv[1], "")
record = logging.makeLogRecord({"msg": "within", "levelno": logging.INFO, "n": 1})
print(_log.wire(record, 1).attributes.decode())
_tracing.flush()
