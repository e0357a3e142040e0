"""Debug mode: checks around every kernel call, which raise at the call that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from tensorplug.contract.arguments import flag
from tensorplug.errors import ArgumentError
from tensorplug.observers import callsite
from tensorplug.observers.leaks import LeakCheck
from tensorplug.observers.nonfinite import NonFiniteCheck
from tensorplug.observers.observation import Observation, describe, observe, provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager

    from tensorplug.dispatch.observer import Observer
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan
    from tensorplug.engine.settings import Check


R = TypeVar("R")


@overload
def debug(
    function: None = None,
    /,
    *,
    nan: bool = True,
    inf: bool = True,
    leaks: bool = False,
    verify: bool = True,
) -> AbstractContextManager[object, None]: ...
@overload
def debug(
    function: Callable[..., R],
    /,
    *args: Any,
    nan: bool = True,
    inf: bool = True,
    leaks: bool = False,
    verify: bool = True,
    **kwargs: Any,
) -> R: ...
def debug(
    function: Callable[..., Any] | None = None,
    /,
    *args: Any,
    nan: bool = True,
    inf: bool = True,
    leaks: bool = False,
    verify: bool = True,
    **kwargs: Any,
) -> Any:
    """Check every kernel call, and raise at the first one that goes wrong.

    ``with debug():`` checks the calls of this thread or task inside the block; ``debug(f, *args)``
    returns ``f(*args)``. ``TENSORPLUG_DEBUG=1`` checks the whole process. It is slow: results are
    read back to the host, which waits for the device.

    Args:
        function: is called with ``args`` and the remaining ``kwargs``.
        args: its arguments.
        nan: a result may contain a NaN only if an input does; data from the caller may not.
        inf: a result may contain an infinity only if an input is not finite. Data and numbers from
            the caller, including ``fill`` values, may be infinite, as in masks.
        leaks: a kernel must not keep memory that it does not return, or free memory of others.
        verify: outputs must have the dtypes and shapes that the spec infers in every call, and
            the device must have computed them: an error that a queue would tell later is raised
            here, with the call's kernel and line. Without this, only the outputs of the first
            call of each plan are checked.
        kwargs: the function's keyword arguments.

    Intermediates of a decomposition or a gradient rule may be infinite, so only their results are
    checked. docs/debugging.md shows the messages.

    Raises:
        NonFiniteError: by ``nan`` and ``inf``: the message has the kernel, a summary of its
            inputs and the line of Python; in a backward pass also the recorded line.
        LeakError: by ``leaks``.
        KernelOutputError: by ``verify``.
        ArgumentError: ``function`` is not a function, or is a coroutine function.
        RuntimeError: an object is entered again before it was left.

    Examples:
        >>> try:
        ...     tp.debug(tp.log, tp.asarray([1.0, -1.0]))
        ... except tp.errors.NonFiniteError as error:
        ...     print(str(error).splitlines()[0])
        Log made 1 NaN of 2, at [1]: nan

    """
    chosen: dict[Check, bool] = {"nan": nan, "inf": inf, "leaks": leaks, "verify": verify}
    watch = _Debug([name for name, choice in chosen.items() if flag(choice, f"debug: {name}")])
    if function is None:
        if args or kwargs:
            raise ArgumentError(f"debug: has no option {next(iter(kwargs), args)!r}")
        return watch
    with watch:
        return observe("debug", function, args, kwargs)


class _Debug(Observation):
    """The context manager form of ``debug``."""

    def __init__(self, names: Collection[Check]) -> None:
        super().__init__("debug")
        self._checks = checks(names)

    def __enter__(self) -> Self:
        return self._start(self._checks)

    def _finish(self) -> None:
        for check in self._checks:
            if isinstance(check, LeakCheck):
                check.finish()


def checks(names: Collection[Check]) -> list[Observer]:
    """Return the observers for the checks of these names, the first one outermost.

    So the spec of a result is checked first, then leaks, then its values.
    """
    observers: list[Observer] = []
    if "nan" in names or "inf" in names:
        observers.append(NonFiniteCheck(nan="nan" in names, inf="inf" in names))
    if "leaks" in names:
        observers.append(LeakCheck())
    if "verify" in names:
        observers.append(SpecCheck())
    return observers


class SpecCheck:
    """Checks the outputs of every call against its spec, not only those of a plan's first.

    It waits for the device, so that an error of its queue comes with the call that caused it.
    """

    def around(
        self, plan: Plan, _inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run and check.

        Raises:
            KernelOutputError: an output does not have the type that the spec infers.
            DeviceError: the device says so.

        """
        outputs = run()
        try:
            plan.device.synchronize("")
        except Exception as error:
            plan.device.blame(error, plan.spec.name)
            site = callsite.find()
            where = "" if site is None else f"\ncalled at {site.describe()}"
            error.add_note(f"the device failed in {describe(plan)}, {provenance(plan)}{where}")
            raise
        plan.verify(outputs)
        return outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Do nothing: an upload has no spec."""
