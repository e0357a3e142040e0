"""Values in messages."""

from __future__ import annotations

_LONGEST = 60


def shown(value: object) -> str:
    """Return a value as text for a message, shortened if it is long."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # deep lists, long integers, whatever a class raises
        return f"an object of class {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
