from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Cancel(_message.Message):
    __slots__ = ["handle", "reason"]
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    REASON_CANCELED: Cancel.Reason
    REASON_FIELD_NUMBER: _ClassVar[int]
    REASON_LEASE_LOST: Cancel.Reason
    REASON_SHUTDOWN: Cancel.Reason
    REASON_TIMEOUT: Cancel.Reason
    REASON_UNSPECIFIED: Cancel.Reason
    handle: int
    reason: Cancel.Reason
    def __init__(self, handle: _Optional[int] = ..., reason: _Optional[_Union[Cancel.Reason, str]] = ...) -> None: ...

class Canceled(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ["checkpoint", "handle"]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    checkpoint: bytes
    handle: int
    def __init__(self, handle: _Optional[int] = ..., checkpoint: _Optional[bytes] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ["max_checkpoint_bytes", "max_follow_up_bytes", "max_follow_ups", "max_progress_bytes", "max_result_bytes"]
    MAX_CHECKPOINT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_FOLLOW_UPS_FIELD_NUMBER: _ClassVar[int]
    MAX_FOLLOW_UP_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PROGRESS_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULT_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_checkpoint_bytes: int
    max_follow_up_bytes: int
    max_follow_ups: int
    max_progress_bytes: int
    max_result_bytes: int
    def __init__(self, max_progress_bytes: _Optional[int] = ..., max_checkpoint_bytes: _Optional[int] = ..., max_result_bytes: _Optional[int] = ..., max_follow_ups: _Optional[int] = ..., max_follow_up_bytes: _Optional[int] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ["concurrency", "job_types", "version"]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    JOB_TYPES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    concurrency: int
    job_types: _containers.RepeatedCompositeFieldContainer[JobType]
    version: str
    def __init__(self, version: _Optional[str] = ..., job_types: _Optional[_Iterable[_Union[JobType, _Mapping]]] = ..., concurrency: _Optional[int] = ...) -> None: ...

class Extension(_message.Message):
    __slots__ = ["handles", "lease_ms"]
    HANDLES_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    handles: _containers.RepeatedScalarFieldContainer[int]
    lease_ms: int
    def __init__(self, handles: _Optional[_Iterable[int]] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ["code", "message", "permanent", "retry_after_ms", "stack"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    permanent: bool
    retry_after_ms: int
    stack: str
    def __init__(self, permanent: bool = ..., code: _Optional[str] = ..., message: _Optional[str] = ..., stack: _Optional[str] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...

class JobType(_message.Message):
    __slots__ = ["concurrency", "description", "max_attempts", "name", "retry", "schema", "terms", "timeout_ms"]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    concurrency: int
    description: str
    max_attempts: int
    name: str
    retry: Retry
    schema: bytes
    terms: Terms
    timeout_ms: int
    def __init__(self, name: _Optional[str] = ..., schema: _Optional[bytes] = ..., max_attempts: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., retry: _Optional[_Union[Retry, _Mapping]] = ..., description: _Optional[str] = ..., concurrency: _Optional[int] = ..., terms: _Optional[_Union[Terms, _Mapping]] = ...) -> None: ...

class Log(_message.Message):
    __slots__ = ["attributes", "dropped", "handle", "level", "message", "time"]
    class Level(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_DEBUG: Log.Level
    LEVEL_ERROR: Log.Level
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LEVEL_INFO: Log.Level
    LEVEL_UNSPECIFIED: Log.Level
    LEVEL_WARN: Log.Level
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    attributes: bytes
    dropped: int
    handle: int
    level: Log.Level
    message: str
    time: str
    def __init__(self, handle: _Optional[int] = ..., level: _Optional[_Union[Log.Level, str]] = ..., message: _Optional[str] = ..., attributes: _Optional[bytes] = ..., time: _Optional[str] = ..., dropped: _Optional[int] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ["canceled", "failed", "handle", "snoozed", "succeeded"]
    CANCELED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    SNOOZED_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    canceled: Canceled
    failed: Failed
    handle: int
    snoozed: Snoozed
    succeeded: Succeeded
    def __init__(self, handle: _Optional[int] = ..., succeeded: _Optional[_Union[Succeeded, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., canceled: _Optional[_Union[Canceled, _Mapping]] = ..., snoozed: _Optional[_Union[Snoozed, _Mapping]] = ...) -> None: ...

class Predecessor(_message.Message):
    __slots__ = ["job_id", "name", "omitted", "result", "succeeded"]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    name: str
    omitted: bool
    result: bytes
    succeeded: bool
    def __init__(self, name: _Optional[str] = ..., job_id: _Optional[str] = ..., succeeded: bool = ..., result: _Optional[bytes] = ..., omitted: bool = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ["handle", "progress"]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    handle: int
    progress: bytes
    def __init__(self, handle: _Optional[int] = ..., progress: _Optional[bytes] = ...) -> None: ...

class Retry(_message.Message):
    __slots__ = ["at_once_after_timeout", "backoff", "base_ms", "cap_ms", "factor", "jitter_max", "jitter_min"]
    class Backoff(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    AT_ONCE_AFTER_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_EXPONENTIAL: Retry.Backoff
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIXED: Retry.Backoff
    BACKOFF_IMMEDIATE: Retry.Backoff
    BACKOFF_UNSPECIFIED: Retry.Backoff
    BASE_MS_FIELD_NUMBER: _ClassVar[int]
    CAP_MS_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    JITTER_MAX_FIELD_NUMBER: _ClassVar[int]
    JITTER_MIN_FIELD_NUMBER: _ClassVar[int]
    at_once_after_timeout: bool
    backoff: Retry.Backoff
    base_ms: int
    cap_ms: int
    factor: float
    jitter_max: float
    jitter_min: float
    def __init__(self, backoff: _Optional[_Union[Retry.Backoff, str]] = ..., base_ms: _Optional[int] = ..., factor: _Optional[float] = ..., cap_ms: _Optional[int] = ..., jitter_min: _Optional[float] = ..., jitter_max: _Optional[float] = ..., at_once_after_timeout: bool = ...) -> None: ...

class Snoozed(_message.Message):
    __slots__ = ["retry_after_ms"]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    retry_after_ms: int
    def __init__(self, retry_after_ms: _Optional[int] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ["attempt", "baggage", "checkpoint", "created_at", "fence", "handle", "job_id", "job_type", "lease_ms", "max_attempts", "payload", "predecessors", "tenant", "timeout_ms", "traceparent", "tracestate"]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BAGGAGE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PREDECESSORS_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    baggage: str
    checkpoint: bytes
    created_at: str
    fence: int
    handle: int
    job_id: str
    job_type: str
    lease_ms: int
    max_attempts: int
    payload: bytes
    predecessors: _containers.RepeatedCompositeFieldContainer[Predecessor]
    tenant: str
    timeout_ms: int
    traceparent: str
    tracestate: str
    def __init__(self, handle: _Optional[int] = ..., job_id: _Optional[str] = ..., job_type: _Optional[str] = ..., tenant: _Optional[str] = ..., payload: _Optional[bytes] = ..., attempt: _Optional[int] = ..., max_attempts: _Optional[int] = ..., fence: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., checkpoint: _Optional[bytes] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ..., created_at: _Optional[str] = ..., baggage: _Optional[str] = ..., predecessors: _Optional[_Iterable[_Union[Predecessor, _Mapping]]] = ...) -> None: ...

class Succeeded(_message.Message):
    __slots__ = ["follow_ups", "result"]
    FOLLOW_UPS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    follow_ups: _containers.RepeatedScalarFieldContainer[bytes]
    result: bytes
    def __init__(self, result: _Optional[bytes] = ..., follow_ups: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Terms(_message.Message):
    __slots__ = ["concurrency_key", "concurrency_limit", "fairness_key", "key_class", "on_conflict"]
    class OnConflict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_CLASS_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_CANCEL_NEWCOMER: Terms.OnConflict
    ON_CONFLICT_CANCEL_OLDEST: Terms.OnConflict
    ON_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_QUEUE: Terms.OnConflict
    ON_CONFLICT_UNSPECIFIED: Terms.OnConflict
    concurrency_key: str
    concurrency_limit: int
    fairness_key: str
    key_class: str
    on_conflict: Terms.OnConflict
    def __init__(self, concurrency_key: _Optional[str] = ..., key_class: _Optional[str] = ..., concurrency_limit: _Optional[int] = ..., on_conflict: _Optional[_Union[Terms.OnConflict, str]] = ..., fairness_key: _Optional[str] = ...) -> None: ...

class WorkRequest(_message.Message):
    __slots__ = ["cancels", "drain", "extension", "starts"]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    EXTENSION_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    cancels: _containers.RepeatedCompositeFieldContainer[Cancel]
    drain: bool
    extension: Extension
    starts: _containers.RepeatedCompositeFieldContainer[Start]
    def __init__(self, starts: _Optional[_Iterable[_Union[Start, _Mapping]]] = ..., cancels: _Optional[_Iterable[_Union[Cancel, _Mapping]]] = ..., extension: _Optional[_Union[Extension, _Mapping]] = ..., drain: bool = ...) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ["checkpoints", "logs", "outcomes", "progress"]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    checkpoints: _containers.RepeatedCompositeFieldContainer[Checkpoint]
    logs: _containers.RepeatedCompositeFieldContainer[Log]
    outcomes: _containers.RepeatedCompositeFieldContainer[Outcome]
    progress: _containers.RepeatedCompositeFieldContainer[Progress]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ..., progress: _Optional[_Iterable[_Union[Progress, _Mapping]]] = ..., checkpoints: _Optional[_Iterable[_Union[Checkpoint, _Mapping]]] = ..., logs: _Optional[_Iterable[_Union[Log, _Mapping]]] = ...) -> None: ...
