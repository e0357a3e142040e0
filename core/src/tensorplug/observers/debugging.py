"""Debug mode: checks around every kernel call, each of which raises at the call that fails it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tensorplug.errors import ArgumentError
from tensorplug.observers.leaks import LeakCheck
from tensorplug.observers.nonfinite import NonFiniteCheck
from tensorplug.observers.observation import Observation, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tensorplug.dispatch.observer import Observer
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan
    from tensorplug.engine.settings import Check

__all__ = ["SpecCheck", "checks", "debug"]


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

    ``with debug():`` checks what this thread or task does inside the block; ``debug(f, *args)``
    returns ``f(*args)``. Other threads are not watched; ``TENSORPLUG_DEBUG=1`` watches the
    whole process. It is slow: results are read back to the host, which waits for the device.

    Args:
        function: what to call, with ``args`` and the remaining ``kwargs``.
        args: its arguments.
        nan: no call may make a NaN where no input has one, and no data given may hold one.
        inf: no call may make an infinity where all inputs are finite. Data and numbers given,
            ``fill`` values among them, may be infinite: masks are.
        leaks: no kernel may leave memory behind that it does not return, nor free what is not
            its own.
        verify: what comes out must have the dtype and shape that the spec infers, at every
            call; without this, only the first call of each plan is compared.
        kwargs: the function's keyword arguments.

    What happens inside a decomposition or a gradient rule may pass through infinity on its way
    to a finite result, so only what they return must be in order. docs/debugging.md shows the
    messages.

    Raises:
        NonFiniteError: by ``nan`` and ``inf``: naming the kernel, what is known of its inputs'
            values and the line of Python; in a backward pass also the line that was recorded.
        LeakError: by ``leaks``.
        KernelOutputError: by ``verify``.
        ArgumentError: ``function`` is no function, or a coroutine function.
        RuntimeError: one object is entered twice at a time.

    """
    chosen: dict[Check, bool] = {"nan": nan, "inf": inf, "leaks": leaks, "verify": verify}
    watch = _Debug([name for name, wanted in chosen.items() if wanted])
    if function is None:
        if args or kwargs:
            raise ArgumentError(f"debug: has no option {next(iter(kwargs), args)!r}")
        return watch
    with watch:
        return observe("debug", function, args, kwargs)


class _Debug:
    """The context manager form of ``debug``."""

    def __init__(self, names: Collection[Check]) -> None:
        self._checks = checks(names)
        self._observation = Observation("debug")

    def __enter__(self) -> Self:
        self._observation.start(self._checks)
        return self

    def __exit__(self, *_error: object) -> None:
        self._observation.stop()
        for check in self._checks:
            if isinstance(check, LeakCheck):
                check.finish()


def checks(names: Collection[Check]) -> list[Observer]:
    """Return the observers that make the checks of these names, the first one outermost.

    Before a check looks at a result, the spec and then the leaks have been looked at.
    """
    found: list[Observer] = []
    if "nan" in names or "inf" in names:
        found.append(NonFiniteCheck(nan="nan" in names, inf="inf" in names))
    if "leaks" in names:
        found.append(LeakCheck())
    if "verify" in names:
        found.append(SpecCheck())
    return found


class SpecCheck:
    """Compares the result of every call with its spec, not only that of a plan's first."""

    def around(
        self, plan: Plan, _inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run and compare.

        Raises:
            KernelOutputError: naming kernel, owner, output, what came and what should have.

        """
        outputs = run()
        plan.verify(outputs)
        return outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Let it pass: an upload has no spec."""
