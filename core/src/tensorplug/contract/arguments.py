"""Reading and quoting the arguments of public functions, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable


_REAL: Final = (int, float, np.integer, np.floating)
_LONGEST: Final = 200  # characters of a value in a message


def quoted(value: object) -> str:
    """Return the ``repr`` of ``value`` for a message, shortened if it is long.

    Python cannot write every value: some lists are nested too deeply, some integers are too long,
    and a class may have a ``__repr__`` that fails.
    """
    if isinstance(value, int) and value.bit_length() > 4 * _LONGEST:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # whatever the value's class raises
        return f"an object of class {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def flag(value: object, what: str) -> bool:
    """Return ``value``, which must be True or False; 0 and 1 are not accepted.

    Raises:
        ArgumentError: it is anything else.

    """
    if isinstance(value, bool):
        return value
    raise ArgumentError(f"{what} must be True or False, got {quoted(value)}")


def optional_flag(value: object, what: str) -> bool | None:
    """Return ``value``, which must be True, False or None.

    Raises:
        ArgumentError: it is anything else.

    """
    if value is None or isinstance(value, bool):
        return value
    raise ArgumentError(f"{what} must be True, False or None, got {quoted(value)}")


def is_text(value: object, text: str) -> bool:
    """Return whether ``value`` is that text. To compare an array would compare its elements."""
    return isinstance(value, str) and value == text


def choice(value: Any, allowed: Iterable[str | None], what: str) -> Any:
    """Return ``value``, which must be one of the ``allowed`` strings, or None if that is one.

    Raises:
        ArgumentError: it is anything else.

    """
    options = tuple(allowed)
    if isinstance(value, str | None) and value in options:
        return value
    listed = ", ".join(map(repr, options))
    raise ArgumentError(f"{what} must be one of {listed}, got {quoted(value)}")


def real(value: Any, what: str) -> float:
    """Return a real number of Python or NumPy as a Python float; a float stays the same object.

    NaN and infinities are accepted.

    Raises:
        ArgumentError: it is not a real number, or is too large for float64.

    """
    if isinstance(value, _REAL) and not isinstance(value, bool):
        try:
            return value if isinstance(value, float) else float(value)  # a subclass is traced
        except OverflowError:
            raise ArgumentError(f"{what} does not fit into float64: {quoted(value)}") from None
    raise ArgumentError(f"{what} must be a real number, got {quoted(value)}")
