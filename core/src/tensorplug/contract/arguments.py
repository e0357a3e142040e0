"""Reading and quoting the arguments of public functions, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.errors import ArgumentError, DTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_text", "choice", "flag", "quoted", "real"]

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


def check_text(text: str, what: str) -> None:
    r"""Refuse text that UTF-8 cannot encode, which no tensor of strings can hold.

    Raises:
        DTypeError: it contains a surrogate, such as ``"\ud800"``.

    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DTypeError(f"{what} is {quoted(text)}, which UTF-8 cannot encode") from None
