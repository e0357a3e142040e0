"""Running NumPy without its floating-point warnings, whatever the user's ``numpy.seterr`` says.

Division by zero, overflow and NaN are ordinary values here, as on every other device. NumPy
keeps its error handling in a context variable, so a call runs inside a ``contextvars.Context``
of its own in which ``seterr(all="ignore")`` was called once. Entering that costs a quarter of
what entering ``numpy.errstate`` costs, and an elementwise kernel on a small array takes little
longer than either (figures in the documentation of performance).
"""

from __future__ import annotations

import contextvars
import threading
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tensorplug.plugin import BackendMemoryError, TensorType
from tensorplug_cpu import large
from tensorplug_cpu.parts import elementwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

__all__ = ["kernel", "quietly", "ufunc"]

F = TypeVar("F", bound="Callable[..., Any]")

# Below this many bytes of output a failed allocation is nothing that a message could mend, and
# the bare ufunc is worth its 0.1 microseconds.
_BARE_LIMIT = 1 << 16


class _Quiet(threading.local):
    """One context per thread, because a context can be entered by one thread at a time."""

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(partial(np.seterr, all="ignore"))
        self.run = context.run


_quiet = _Quiet()


def _again(function: Callable[..., Any], args: tuple[Any, ...], error: RuntimeError) -> Any:
    """Run ``function`` after ``error``, which a context that is entered already raises too.

    That happens when a finalizer or a signal handler computes something while this thread is
    inside a kernel. Kernels write into nothing they did not make, so running one twice is safe;
    an error of its own comes again.
    """
    with np.errstate(all="ignore"):
        try:
            return function(*args)
        except RuntimeError as own:
            raise own from error


def _no_memory(error: MemoryError) -> BackendMemoryError:
    return BackendMemoryError(f"cpu: {str(error) or 'out of memory'}")


def quietly(function: F) -> F:
    """Decorate a function of positional arguments to run quietly.

    A ``MemoryError`` comes out as ``BackendMemoryError`` with NumPy's account of the request.
    """
    quiet = _quiet

    @wraps(function)
    def call(*args: Any) -> Any:
        try:
            return quiet.run(function, *args)
        except RuntimeError as error:
            return _again(function, args, error)
        except MemoryError as error:
            raise _no_memory(error) from error

    return call  # type: ignore[return-value]  # same parameters, same result


def kernel(function: Callable[..., Any], out: TensorType) -> Call:
    """Return ``function`` as what a plan calls: quiet, and with an array also for rank 0.

    NumPy's functions return scalars instead of arrays of rank 0.
    """
    if out.rank:
        return quietly(function)

    def wrapped(*buffers: Any) -> Array:
        return np.asarray(function(*buffers))

    return quietly(wrapped)


def ufunc(function: np.ufunc, out: TensorType, *, signals: bool) -> Call:
    """Return what a plan calls for one NumPy ufunc.

    ``signals``: whether it can raise a floating-point flag for these types. Where it cannot,
    the plan calls the ufunc itself.
    """
    if not out.rank:
        dtype = out.dtype.numpy
        return quietly(lambda *buffers: function(*buffers, out=np.empty((), dtype)))
    if large.is_large(out):
        return elementwise(quietly(large.elementwise(function, out)), function)
    if not signals and out.nbytes < _BARE_LIMIT:
        return function
    return elementwise(_unary(function) if function.nin == 1 else _binary(function), function)


# The same as `quietly` with the arguments written out, which saves packing them into a tuple.


def _unary(function: np.ufunc) -> Call:
    quiet = _quiet

    def call(x: Array) -> Any:
        try:
            return quiet.run(function, x)
        except RuntimeError as error:
            return _again(function, (x,), error)
        except MemoryError as error:
            raise _no_memory(error) from error

    return call


def _binary(function: np.ufunc) -> Call:
    quiet = _quiet

    def call(a: Array, b: Array) -> Any:
        try:
            return quiet.run(function, a, b)
        except RuntimeError as error:
            return _again(function, (a, b), error)
        except MemoryError as error:
            raise _no_memory(error) from error

    return call
