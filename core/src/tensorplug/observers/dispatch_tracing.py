"""What a program asks of kernels, call by call, and how each call is answered."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TextIO

from tensorplug.engine.operands import types_of
from tensorplug.observers import callsite
from tensorplug.observers.observation import Observation, describe, provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan
    from tensorplug.engine.promotion import Promotion
    from tensorplug.observers.callsite import CallSite

__all__ = ["DispatchTrace", "TracedCall", "trace_dispatch"]


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One call that was traced.

    ``call`` is it as text, with types and attributes. ``how`` is native, decomposed or
    fallback; or promoted: then the casts to a common dtype follow, and the call with what they
    gave. ``owner`` is the distribution whose code runs, ``device`` where it was asked for.
    ``depth`` counts the calls of which it is part. ``site`` is the line of Python. ``raised``
    is what it raised, if it did.
    """

    name: str
    call: str
    attributes: Mapping[str, Any]
    how: str
    owner: str
    device: str
    depth: int
    site: CallSite | None
    raised: str = ""


class _Depth(threading.local):
    """How many traced calls this thread is inside of, and the line of the outermost."""

    calls = 0
    site: CallSite | None = None


class DispatchTrace:
    """The calls of a traced block, in the order in which they began.

    ``calls`` are the records; ``str()`` gives a line for each, indented by depth.
    """

    def __init__(self, file: TextIO | None) -> None:
        self.calls: list[TracedCall] = []
        self._file = file
        self._lines: list[str] = []
        self._depth = _Depth()
        self._observation = Observation("trace_dispatch")

    def __enter__(self) -> Self:
        self._observation.start([self])
        return self

    def __exit__(self, *_error: object) -> None:
        self._observation.stop()

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def around(
        self, plan: Plan, _inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Write a line, then run."""
        how, owner, device = plan.how, str(plan.owner), plan.device.name
        line = f"{describe(plan)}  {provenance(plan)}"
        result: list[Tensor] = self._traced(
            line, run, plan.spec.name, describe(plan), plan.attributes, how, owner, device
        )
        return result

    def promoting(
        self, promotion: Promotion, inputs: Sequence[Any], run: Callable[[], Any]
    ) -> Any:
        """Write a line; the casts and the call itself come below."""
        call = promotion.spec.describe(types_of(inputs))
        line = f"{call}  promoted to {promotion.dtype}"
        return self._traced(line, run, promotion.spec.name, call, {}, "promoted", "", "")

    def uploaded(self, tensor: Tensor) -> None:
        """Let it pass: an upload is no call."""

    def _traced(self, line: str, run: Callable[[], Any], *what: Any) -> Any:
        depth = self._depth
        if not depth.calls:
            depth.site = callsite.find()
        name, call, attributes, how, owner, device = what
        record = TracedCall(name, call, attributes, how, owner, device, depth.calls, depth.site)
        at = len(self.calls)
        self.calls.append(record)
        self._write(depth.calls, line if record.site is None else f"{line}  {record.site}")
        depth.calls += 1
        try:
            return run()
        except BaseException as error:
            raised = f"{type(error).__name__}: {error}".rstrip(": ")
            self.calls[at] = replace(record, raised=raised)
            self._write(depth.calls, f"raised {raised}")
            raise
        finally:
            depth.calls -= 1

    def _write(self, depth: int, line: str) -> None:
        indented = "  " * depth + line.replace("\n", " ")
        self._lines.append(indented)
        if self._file is not None:
            print(indented, file=self._file, flush=True)


def trace_dispatch(file: TextIO | None = None) -> DispatchTrace:
    """Write down every kernel call of a ``with`` block, and how it is answered.

    One line per call: kernel, types, attributes and outputs; whether it runs natively, by
    decomposition or by fallback, whose code runs and on which device; the line of Python. What
    a decomposition or a fallback calls stands below it, indented, and so do the casts of a call
    with mixed dtypes. Calls of this thread or task are seen, not those of other threads.

    Args:
        file: a text file to which each line is written, and flushed, before the kernel runs:
            of a program that hangs or dies in a kernel, the last line names it.

    Returns:
        A context manager that gives a ``DispatchTrace``: ``calls``, and ``str()`` for reading.

    Raises, when entered:
        RuntimeError: this object is entered already, here or in another thread.

    """
    return DispatchTrace(file)
