"""JSON and text that the orchestrator will accept."""

from __future__ import annotations

import json
from typing import Any


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8. It raises ValueError or TypeError for what has none."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the text holds half a surrogate pair") from error


def clean(text: str, limit: int) -> str:
    """Makes a text fit for the wire, which takes valid UTF-8 only, and for the
    database, which takes no NUL; and cuts it at a character."""
    # Every character takes a byte at least: what is beyond would be encoded for nothing.
    encoded = text[:limit].replace("\0", "\ufffd").encode(errors="replace")
    return encoded[:limit].decode(errors="ignore")
