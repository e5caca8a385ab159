"""JSON and text that the orchestrator accepts."""

from __future__ import annotations

import dataclasses
import enum
import json
import uuid
from datetime import date
from typing import Any


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8. Dataclasses, enumerations, times and pydantic models
    become what they are made from. It raises ValueError or TypeError for a value that
    JSON cannot express."""
    text = _encoder.encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the text holds half a surrogate pair") from error


def _plain(value: Any) -> Any:
    """The value that json asks for where it meets one of another type."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "model_dump"):  # pydantic's
        return value.model_dump(mode="json")
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def clean(text: str, limit: int) -> str:
    """Cuts a text to a number of bytes, at a character, and makes it fit for the
    protocol, which takes valid UTF-8, and for the database, which takes no NUL."""
    # Every character is at least one byte: do not encode what is cut anyway.
    encoded = text[:limit].replace("\0", "\ufffd").encode(errors="replace")
    return encoded[:limit].decode(errors="ignore")
