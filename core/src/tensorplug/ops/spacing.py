"""Evenly spaced numbers beyond the kernel of ``linspace``: integers, between tensors, powers."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import flag, quoted
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor, dispatch, run_on
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops.elementwise.arithmetic import add, floor_divide, multiply, subtract
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.unary import floor
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import DTypeLike, SupportsArray

__all__ = ["logspace"]


def make_integers(
    start: float, stop: float, num: Any, dtype: DType, *, endpoint: bool
) -> np.ndarray[Any, Any]:
    """Return ``num`` evenly spaced numbers, rounded down to integers.

    Between integers they are exact: start + floor(i (stop - start) / steps).

    Raises:
        ArgumentError: an end is not finite or does not fit ``dtype``, or ``num`` is negative.
        DTypeError: an end is complex.

    """
    count = _read_count(num, "linspace")
    for end in (start, stop):
        if isinstance(end, complex | np.complexfloating):
            raise DTypeError(f"linspace: {end!r} cannot become {dtype}")
        if not isfinite(end):
            raise ArgumentError(f"linspace: {end!r} does not fit into {dtype}")
        try:
            dt.check_number(int(end // 1), dtype)
        except ArgumentError as error:
            raise ArgumentError(f"linspace: {error}") from None
    if not all(isinstance(end, int | np.integer) for end in (start, stop)):
        numbers = np.linspace(float(start), float(stop), count, endpoint=endpoint)
        return np.floor(numbers).astype(dtype.numpy)
    first, last = int(start), int(stop)
    steps = max(count - 1 if endpoint else count, 1)
    fits = max(abs(first), abs(last), abs(last - first)) * (steps + 1) < 1 << 63
    positions = np.arange(count, dtype=np.int64 if fits else object)  # Python's integers are exact
    return np.asarray(first + positions * (last - first) // steps).astype(dtype.numpy)


def _read_count(num: Any, caller: str) -> int:
    count = shapes.index(num, f"{caller}: num")
    if count < 0:
        raise ArgumentError(f"{caller}: num must be at least 0, got {count}")
    return count


def spread(
    spec: KernelSpec, start: Any, stop: Any, num: Any, dtype: DType | None, *, endpoint: bool
) -> Tensor:
    """Return ``num`` evenly spaced tensors from ``start`` to ``stop``, which broadcast.

    They are means weighted by ``spec``'s numbers from 0 to 1, so both ends are exact.

    Args:
        spec: of ``linspace``.
        start: float32[...] or another dtype; a Python number is weak.
        stop: likewise.
        num: the length of axis 0 of the result.
        dtype: of the result; None for that of the ends, or the default float for integers.
        endpoint: whether ``stop`` is included.

    Raises:
        DTypeError: an end is complex, but ``dtype`` is not; or the ends have no common dtype.
        ShapeError: the ends do not broadcast.

    """
    ends = dict(zip(("start", "stop"), (start, stop), strict=True))
    tensors = {
        name: as_tensor(end, what=f"linspace: {name}")
        for name, end in ends.items()
        if not host_values.is_scalar(end)
    }
    peer = dt.promote(tensor.dtype for tensor in tensors.values())
    numbers = (end for name, end in ends.items() if name not in tensors)
    own = dt.promote([peer, *(dt.of_scalar(number, peer) for number in numbers)])
    if dtype is not None and own in dt.COMPLEX and dtype not in dt.COMPLEX:
        raise DTypeError(f"linspace: complex ends cannot become {dtype}")
    if own in dt.INTEGER and dtype in dt.INTEGER:
        working = dt.promote([own, dt.int64])  # not uint64, whose differences would wrap
    else:
        working = dt.inexact(own) if dtype is None or dtype in dt.INTEGER else dtype
    first, last = (
        as_tensor(tensors.get(name, end), working, what=f"linspace: {name}")
        for name, end in ends.items()
    )
    rank = max(first.ndim, last.ndim)
    if dtype is not None and working in dt.INTEGER:
        return astype(_spread_integers(first, last, num, rank, endpoint=endpoint), dtype)
    share = dispatch(spec, start=0, stop=1, num=num, endpoint=endpoint, dtype=working)
    share = reshape(share, (-1, *(1,) * rank))
    result = add(multiply(subtract(1, share), first), multiply(share, last))
    return astype(floor(result), dtype) if dtype in dt.INTEGER else result


def _spread_integers(
    first: Tensor, last: Tensor, num: Any, rank: int, *, endpoint: bool
) -> Tensor:
    """Return exact numbers between tensors of int64, rounded down."""
    positions = np.arange(_read_count(num, "linspace")).reshape(-1, *(1,) * rank)
    steps = max(len(positions) - 1 if endpoint else len(positions), 1)
    length = subtract(last, first)
    # A quotient and a remainder, so that no product is longer than the range itself.
    quotient = floor_divide(length, steps)
    rest = subtract(length, multiply(quotient, steps))
    part = floor_divide(multiply(rest, positions), steps)
    return add(first, add(multiply(quotient, positions), part))


def logspace(
    start: float | SupportsArray,
    stop: float | SupportsArray,
    /,
    num: int = 50,
    *,
    endpoint: bool = True,
    base: float | SupportsArray = 10.0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return ``base ** x`` for ``num`` evenly spaced exponents x from ``start`` to ``stop``.

    The powers are computed in float64, then rounded.

    Args:
        start: the first exponent.
        stop: the last exponent; without ``endpoint`` the exponents end one step before it.
        num: how many numbers.
        endpoint: whether ``stop`` is included.
        base: the base of the powers.
        dtype: floating; float32 by default.
        device: of the result; the active one by default.

    Raises:
        ArgumentError: an argument is not a real number, or ``num`` is negative.
        DTypeError: the dtype is not floating.

    Source: NumPy's logspace.

    Examples:
        >>> tp.logspace(0, 2, 3)
        Tensor([  1.,  10., 100.], dtype=float32, device='cpu')
        >>> tp.logspace(0, 3, 3, base=2, endpoint=False)
        Tensor([1., 2., 4.], dtype=float32, device='cpu')

    """
    result_dtype = dt.default_float if dtype is None else dt.of(dtype, "logspace")
    if result_dtype not in dt.FLOATING:
        raise DTypeError(f"logspace: dtype must be floating, got {result_dtype}")
    count = _read_count(num, "logspace")
    flag(endpoint, "logspace: endpoint")
    named = {"start": start, "stop": stop, "base": base}
    first, last, factor = (_read_number(value, name) for name, value in named.items())
    with np.errstate(all="ignore"):
        powers = np.power(factor, np.linspace(first, last, count, endpoint=endpoint))
        return run_on(device, lambda: as_tensor(powers, result_dtype))


def _read_number(value: Any, name: str) -> float:
    tensor = as_tensor(value, what=f"logspace: {name}")
    if tensor.ndim or tensor.dtype not in dt.REAL:
        raise ArgumentError(f"logspace: {name} must be a real number, got {quoted(value)}")
    # A Python number has more digits than float32.
    return float(value if isinstance(value, int | float) else tensor.item())
