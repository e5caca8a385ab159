"""Constants of the protocol, and limits that the orchestrator checks."""

PROTOCOL_VERSION = 1

COOKIE_KEY = "HOLDFAST_HANDLER"
COOKIE_VALUE = "holdfast-handler-plugin"

MAX_MESSAGE_BYTES = 64 << 20
"""The largest gRPC message, in both directions. gRPC's default for receiving is 4 MiB."""

MAX_VALUE_BYTES = MAX_MESSAGE_BYTES - (1 << 20)
"""The largest result, progress or checkpoint, unless the orchestrator sets a lower cap.
It leaves room for the rest of the message."""

MAX_SCHEMA_BYTES = 256 << 10
MAX_NAME_BYTES = 200
MAX_VERSION_BYTES = 200
MAX_DESCRIPTION_BYTES = 1000
MAX_ATTEMPTS = 1_000_000
MAX_CONCURRENCY = 10_000
MAX_POINTER_BYTES = 1000
MAX_KEY_CLASS_CHARS = 100
MAX_CONCURRENCY_LIMIT = 100_000

# Longer texts of failures and log records are cut.
MAX_CODE_BYTES = 200
MAX_MESSAGE_TEXT_BYTES = 32 << 10
MAX_STACK_BYTES = 32 << 10
MAX_LOG_BYTES = 16 << 10

# Codes of the SDK's own failures.
CODE_TIMEOUT = "timeout"
CODE_LEASE_LOST = "lease_lost"
CODE_PANIC = "panic"
CODE_BAD_PAYLOAD = "bad_payload"
CODE_BAD_RESULT = "bad_result"
CODE_UNKNOWN_TYPE = "unknown_type"
CODE_RESULT_TOO_LARGE = "result_too_large"
CODE_CHECKPOINT_TOO_LARGE = "checkpoint_too_large"
CODE_FOLLOW_UPS_TOO_LARGE = "followups_too_large"
CODE_UNKNOWN_PREDECESSOR = "unknown_predecessor"
CODE_RESULT_OMITTED = "result_omitted"

# Exit codes of a plugin process.
EXIT_DRAINED = 0
EXIT_UNUSABLE = 1
"""Started by hand, or without handlers."""
EXIT_ABANDONED = 3
"""The orchestrator is gone, or a lease ran out."""
