"""Numbers evenly spaced on a logarithmic scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.calls import as_tensor, run_on
from tensorplug.errors import ArgumentError, DTypeError

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["logspace"]


def logspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    *,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    device: str | None = None,
) -> Tensor:
    """Return ``base ** x`` for ``num`` evenly spaced exponents x from ``start`` to ``stop``.

    The powers are computed in float64, then rounded.

    Args:
        start: the first exponent.
        stop: the last exponent; without ``endpoint`` the exponents end one step before it.
        num: their number.
        endpoint: whether ``stop`` is included.
        base: the base of the powers.
        dtype: floating; float32 by default.
        device: of the result; the active one by default.

    Raises:
        ArgumentError: an argument is not a real number, or ``num`` is negative.
        DTypeError: the dtype is not floating.

    Example::

        tp.logspace(0, 2, 3)  # [1, 10, 100]

    Source: NumPy's logspace.

    """
    wanted = dt.default_float if dtype is None else dt.of(dtype, "logspace")
    if wanted not in dt.FLOATING:
        raise DTypeError(f"logspace: dtype must be floating, got {wanted}")
    count = shapes.index(num, "logspace: num")
    if count < 0:
        raise ArgumentError(f"logspace: num must not be negative, got {count}")
    if not isinstance(endpoint, bool):
        raise ArgumentError(f"logspace: endpoint must be a bool, got {quoted(endpoint)}")
    named = {"start": start, "stop": stop, "base": base}
    first, last, factor = (_read_number(value, name) for name, value in named.items())
    with np.errstate(all="ignore"):
        powers = np.power(factor, np.linspace(first, last, count, endpoint=endpoint))
        return run_on(device, lambda: as_tensor(powers, wanted))


def _read_number(value: Any, name: str) -> float:
    tensor = as_tensor(value, what=f"logspace: {name}")
    if tensor.ndim or tensor.dtype not in dt.REAL:
        raise ArgumentError(f"logspace: {name} must be a real number, got {quoted(value)}")
    # A Python number has more digits than float32.
    return float(value if isinstance(value, int | float) else tensor.item())
