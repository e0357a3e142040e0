"""Tracing kernel calls and how each of them is resolved."""

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


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One traced call.

    ``call`` is its text, with types and attributes. ``how`` is native, decomposed, fallback,
    promoted or transferred; after a promoted call follow the casts to a common dtype, and the
    call with their results. A transfer is not a kernel call. It copies a tensor from another
    device to ``device``. ``owner`` is the distribution whose code runs, ``device`` that of the
    context. ``depth`` counts the enclosing calls. ``site`` is the line of Python. ``raised`` is
    the text of the error, if any.
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
    """The number of traced calls that enclose the current one in this thread, and their line."""

    calls = 0
    site: CallSite | None = None


class DispatchTrace(Observation):
    """The calls of a traced block, in the order of their start.

    ``calls`` are the records; ``str()`` returns one line per call, indented by depth.
    """

    def __init__(self, file: TextIO | None) -> None:
        super().__init__("trace_dispatch")
        self.calls: list[TracedCall] = []
        self._file = file
        self._lines: list[str] = []
        self._depth = _Depth()

    def __enter__(self) -> Self:
        return self._start([self])

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
        """Write a line; the casts and the call itself follow it."""
        call = promotion.spec.describe(types_of(inputs))
        line = f"{call}  promoted to {promotion.dtype}"
        return self._traced(line, run, promotion.spec.name, call, {}, "promoted", "", "")

    def uploaded(self, tensor: Tensor) -> None:
        """Do nothing: an upload is not a call."""

    def transferred(self, tensor: Tensor) -> None:
        """Write a line: a copy from another device may take longer than a kernel."""
        type_, device = tensor.type, tensor.device
        line = f"{type_}  copied to {device}"
        self._record(line, "Transfer", str(type_), {}, "transferred", "", device)

    def _record(self, line: str, *what: Any) -> TracedCall:
        depth = self._depth
        if not depth.calls:
            depth.site = callsite.find()
        name, call, attributes, how, owner, device = what
        record = TracedCall(name, call, attributes, how, owner, device, depth.calls, depth.site)
        self.calls.append(record)
        self._write(depth.calls, line if record.site is None else f"{line}  {record.site}")
        return record

    def _traced(self, line: str, run: Callable[[], Any], *what: Any) -> Any:
        at, depth = len(self.calls), self._depth
        record = self._record(line, *what)
        before = depth.calls
        try:
            depth.calls = before + 1
            return run()
        except BaseException as error:
            raised = f"{type(error).__name__}: {error}".rstrip(": ")
            self.calls[at] = replace(record, raised=raised)
            self._write(before + 1, f"raised {raised}")
            raise
        finally:
            depth.calls = before

    def _write(self, depth: int, line: str) -> None:
        indented = "  " * depth + line.replace("\n", " ")
        self._lines.append(indented)
        if self._file is not None:
            print(indented, file=self._file, flush=True)


def trace_dispatch(file: TextIO | None = None) -> DispatchTrace:
    """Trace every kernel call of a ``with`` block in this thread or task.

    There is one line per call: kernel, types, attributes and outputs; whether it runs natively,
    by decomposition or by fallback; the owner of the code and the device; the line of Python.
    The calls of a decomposition or a fallback follow it, indented, and so do the casts of a call
    with mixed dtypes. A tensor that is copied from another device has a line, too.

    Args:
        file: a text file to which each line is written, and flushed, before the kernel runs: if
            a program hangs or crashes in a kernel, the last line names it.

    Returns:
        A context manager that returns a ``DispatchTrace``, with ``calls`` and ``str()``.

    Raises, when entered:
        RuntimeError: this object has been entered already, here or in another thread.

    Examples:
        >>> with tp.trace_dispatch() as trace:
        ...     y = tp.nn.relu(tp.asarray([-1.0, 2.0]))
        >>> [(call.name, call.how, call.device) for call in trace.calls]
        [('Relu', 'native', 'cpu')]

    """
    return DispatchTrace(file)
