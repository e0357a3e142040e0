"""Running NumPy without floating-point warnings, whatever the user's ``numpy.seterr`` says.

Division by zero, overflow and NaN give ordinary values here, as on every other device. NumPy
keeps its error handling in a context variable, so a call runs inside its own
``contextvars.Context``, in which ``seterr(all="ignore")`` was called once. Entering that takes a
quarter of the time of ``numpy.errstate``, which matters beside an elementwise kernel on a small
array (figures in the documentation of performance).
"""

from __future__ import annotations

import contextvars
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from tensorplug.plugin import BackendMemoryError, TensorType
from tensorplug_cpu.execution import parallel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call


F = TypeVar("F", bound="Callable[..., Any]")

# With fewer bytes of output than this, allocation hardly ever fails, and calling the ufunc itself
# saves 0.1 microseconds.
_BARE_LIMIT = 1 << 16


class _Silenced(threading.local):
    """One context per thread, because only one thread at a time can be inside a context.

    They are copies, so that a new thread's first call does not wait for ``seterr``.
    """

    def __init__(self, context: contextvars.Context) -> None:
        self.run = context.copy().run


def _silenced_context(**raised: Literal["raise"]) -> contextvars.Context:
    context = contextvars.Context()
    context.run(partial(np.seterr, all="ignore", **raised))
    return context


_silenced = _Silenced(_silenced_context())
_raising = _Silenced(_silenced_context(over="raise"))
_dividing = _Silenced(_silenced_context(divide="raise"))


def _run_again(function: Callable[..., Any], args: tuple[Any, ...], error: RuntimeError) -> Any:
    """Run ``function`` after ``error``, which may mean that the context is already entered.

    That happens when a finalizer or a signal handler computes something while this thread is
    inside a kernel. A kernel writes only into arrays of its own, so running one twice is safe; if
    the error came from the kernel, it is raised again.
    """
    with np.errstate(all="ignore"):
        try:
            return function(*args)
        except RuntimeError as own:
            raise own from error


def _no_memory(error: MemoryError) -> BackendMemoryError:
    return BackendMemoryError(f"cpu: {str(error) or 'out of memory'}")


def without_warnings(function: F) -> F:
    """Decorate a function of positional arguments to run without floating-point warnings.

    A ``MemoryError`` becomes a ``BackendMemoryError`` with NumPy's message.
    """
    silenced = _silenced

    def call(*args: Any) -> Any:
        try:
            return silenced.run(function, *args)
        except RuntimeError as error:
            return _run_again(function, args, error)
        except MemoryError as error:
            raise _no_memory(error) from error

    # For signatures. The rest of ``functools.wraps`` is as much work as many a kernel's plan.
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]  # same parameters, same result


def without_overflow(
    function: Callable[[Array], Array], wide: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """Return ``function``, and ``wide`` in its place for arrays with which it overflows.

    Asking for the processor's flag, which NumPy reads anyway, costs nothing; looking at the
    results would.
    """
    raising = _raising

    def call(x: Array) -> Array:
        try:
            try:
                return raising.run(function, x)
            except RuntimeError:  # as in _run_again
                with np.errstate(over="raise"):
                    return function(x)
        except FloatingPointError:
            return wide(x)

    return call


def kernel(function: Callable[..., Any], out: TensorType) -> Call:
    """Return the callable of a plan: ``function`` without warnings, with arrays as results.

    NumPy's functions return scalars instead of arrays of rank 0.
    """
    if out.rank:
        return without_warnings(function)

    def wrapped(*buffers: Any) -> Array:
        return np.asarray(function(*buffers))

    return without_warnings(wrapped)


def ufunc(function: np.ufunc, out: TensorType, *, signals: bool) -> Call:
    """Return the callable of a plan for one NumPy ufunc.

    ``signals``: whether it can raise a floating-point flag for these types. If it cannot, the plan
    calls the ufunc itself.
    """
    if not out.rank:
        dtype = out.dtype.numpy
        return without_warnings(lambda *buffers: function(*buffers, out=np.empty((), dtype)))
    if parallel.is_large(out):
        return without_warnings(parallel.ufunc_kernel(function, out))
    if not signals and out.nbytes < _BARE_LIMIT:
        return function
    return _unary(function) if function.nin == 1 else binary(function)


# The same as `without_warnings`, without packing the arguments into a tuple.


def _unary(function: np.ufunc) -> Call:
    silenced = _silenced

    def call(x: Array) -> Any:
        try:
            return silenced.run(function, x)
        except RuntimeError as error:
            return _run_again(function, (x,), error)
        except MemoryError as error:
            raise _no_memory(error) from error

    return call


def binary(function: Call, by_zero: Call | None = None) -> Call:
    """Return a function of two arrays, without floating-point warnings.

    ``by_zero``: is called instead for arrays with which ``function`` divides by zero.
    """
    silenced = _silenced if by_zero is None else _dividing

    def call(a: Array, b: Array) -> Any:
        try:
            return silenced.run(function, a, b)
        except RuntimeError as error:
            return _run_again(function, (a, b), error)
        except MemoryError as error:
            raise _no_memory(error) from error
        except FloatingPointError:
            if by_zero is None:
                raise
            return by_zero(a, b)

    return call
