"""The check for NaN and infinities: an observer that raises at the call that made the first."""

from __future__ import annotations

import cmath
import copy
import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from tensorplug.autodiff.tape import CallNode, OutputNode
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import NonFiniteError
from tensorplug.observers import callsite
from tensorplug.observers.observation import describe, provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.autodiff.recipes import Recipe, Step
    from tensorplug.autodiff.tape import Node
    from tensorplug.engine.plans import Plan
    from tensorplug.observers.callsite import CallSite


Array = np.ndarray[Any, np.dtype[Any]]


class _Inside(threading.local):
    """The calls that enclose the current one in this thread.

    ``kernel``: whether it is inside a decomposition or a fallback. ``suspects``: None outside a
    gradient rule; inside one the faults of its calls, which its result may not have.
    """

    kernel: bool = False
    suspects: list[str] | None = None


class NonFiniteCheck:
    """Raises ``NonFiniteError`` at the call that makes a NaN or an infinity of other numbers.

    A NaN is allowed if an input has one; an infinity if an input has an infinity or a NaN, in any
    element.

    The calls inside a decomposition are not checked, only its result. A gradient rule's result is
    checked against its arguments, and the error shows the first of its calls that failed.
    """

    def __init__(self, *, nan: bool, inf: bool) -> None:
        self._nan = nan
        self._inf = inf
        self._inside = _Inside()

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run, and check the outputs unless the call is part of another."""
        inside = self._inside
        if inside.kernel:
            return run()
        inside.kernel = True
        try:
            outputs = run()
        finally:
            inside.kernel = False
        labelled = list(zip(plan.output_labels(), outputs, strict=True))
        fault = self._fault(labelled, list(_labelled(plan, inputs)), plan)
        if fault is None:
            return outputs
        message = _message(plan, inputs, fault)
        if inside.suspects is None:
            # Not stored in a variable first: error and stack frame would refer to each other.
            raise NonFiniteError(message)
        inside.suspects.append(message)
        return outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Refuse data with a NaN; an infinity may be intended, as in a mask.

        Raises:
            NonFiniteError: the data has a NaN.

        """
        if not self._nan or self._inside.kernel:
            return
        values = _inexact(tensor)
        bad = None if values is None else np.isnan(values)
        if bad is not None and bad.any():
            raise NonFiniteError(
                f"the data given as {tensor.type} holds {_share('NaN', bad, values)}"
                f"{_at('given', callsite.find())}"
            )

    def recorded(self, plan: Plan, outputs: Sequence[Tensor]) -> None:
        """Add checks to the gradient rules of a call that the tape has just recorded."""
        nodes = dict.fromkeys(_call_node(output._node) for output in outputs)
        for node in nodes:
            if node is not None and node.plan is plan:
                node.recipe = self._add_checks(node.recipe, plan.spec.name, callsite.find())

    # Gradient rules -------------------------------------------------------------------

    def _add_checks(self, recipe: Recipe, kernel: str, site: CallSite | None) -> Recipe:
        """Return a copy of a recipe whose rules are checked."""
        checked = copy.copy(recipe)
        checked.steps = [self._add_check(step, kernel, site) for step in recipe.steps]
        return checked

    def _add_check(self, step: Step, kernel: str, site: CallSite | None) -> Step:
        checked = copy.copy(step)
        what = f"the gradient of {kernel!r} with respect to {step.name!r}"
        checked.rule = partial(self._run_rule, step.rule, what, site)
        return checked

    def _run_rule(
        self, rule: Callable[..., Any], what: str, site: CallSite | None, *arguments: Any
    ) -> Any:
        """Call a gradient rule, and check its result if this check is active in the context."""
        if not self._is_on():
            return rule(*arguments)
        inside = self._inside
        before, inside.suspects = inside.suspects, []
        try:
            result = rule(*arguments)
            suspects = inside.suspects
        finally:
            inside.suspects = before
        results = list(result.values()) if isinstance(result, Mapping) else [result]
        inputs = [("", tensor) for argument in arguments for tensor in _tensors(argument)]
        outputs = [("", tensor) for gradient in results for tensor in _tensors(gradient)]
        fault = self._fault(outputs, inputs)
        if fault is None:
            return result
        recorded = _at("recorded", site)
        if suspects:
            raise NonFiniteError(f"{suspects[0]}\nin {what}{recorded}")
        raise NonFiniteError(f"{what} has {fault.share}{recorded}")

    def _is_on(self) -> bool:
        context = current_context()
        return self in (*context.observers, *getattr(context.engine, "observers", ()))

    # Values ---------------------------------------------------------------------------

    def _fault(
        self,
        outputs: Sequence[tuple[str, Any]],
        inputs: Sequence[tuple[str, Any]],
        plan: Any = None,
    ) -> _Fault | None:
        """Return the first fault of ``outputs``, if any; both are labels with tensors."""
        for label, tensor in outputs:
            values = _inexact(tensor)
            if values is None or np.isfinite(values).all():
                continue
            nan, inf = np.isnan(values), np.isinf(values)
            if self._nan and nan.any() and not any(_has_nan(operand) for _, operand in inputs):
                return _Fault("NaN", label, nan, values)
            if self._inf and inf.any() and not _may_be_infinite(inputs, plan):
                return _Fault("infinity", label, inf, values)
        return None


class _Fault(NamedTuple):
    """The NaNs or infinities of an output: ``values`` are wrong where ``bad`` is True."""

    kind: Literal["NaN", "infinity"]
    label: str
    bad: Array
    values: Array

    @property
    def share(self) -> str:
        """Their number, and the first one."""
        return _share(self.kind, self.bad, self.values)


def _inexact(tensor: Tensor) -> Array | None:
    """Return the values of a tensor that can contain a NaN, else None; waits for the device."""
    if tensor.dtype not in dt.INEXACT:
        return None
    return tensor._placement.device.read(tensor._buffer, tensor.type)


def _has_nan(tensor: Tensor) -> bool:
    """Return whether there is a computed NaN.

    A NaN that the caller passed as a number does not count: like data with a NaN, it is the
    origin of the error.
    """
    values = _inexact(tensor)
    return values is not None and bool(np.isnan(values).any()) and not _is_constant(tensor)


def _is_constant(tensor: Tensor) -> bool:
    constants = list(tensor._placement.device.constants.values())
    return any(constant is tensor for constant in constants)


def _may_be_infinite(inputs: Sequence[tuple[str, Tensor]], plan: Plan | None) -> bool:
    """Return whether an output may be infinite, because an input has an infinity or a NaN."""
    attributes = () if plan is None else plan.attributes.values()
    if any(
        isinstance(attribute, float | complex) and cmath.isinf(attribute)
        for attribute in attributes
    ):
        return True
    arrays = (_inexact(operand) for _, operand in inputs)
    return any(values is not None and not np.isfinite(values).all() for values in arrays)


def _tensors(operand: Any) -> Iterator[Tensor]:
    """Yield the tensors of an input: itself, or the members of a list."""
    for tensor in operand if isinstance(operand, list) else [operand]:
        if isinstance(tensor, Tensor):
            yield tensor


def _labelled(plan: Plan, inputs: Sequence[Any]) -> Iterator[tuple[str, Tensor]]:
    for name, operand in zip(plan.spec.input_names, inputs, strict=True):
        for at, tensor in enumerate(_tensors(operand)):
            yield (f"{name}[{at}]" if isinstance(operand, list) else name), tensor


def _call_node(node: Node | None) -> CallNode | None:
    if isinstance(node, OutputNode):
        node = node.parents[0]
    return node if isinstance(node, CallNode) else None


# Messages -------------------------------------------------------------------------------

_NUMBER: Final = "{:.6g}".format


def _message(plan: Plan, inputs: Sequence[Any], fault: _Fault) -> str:
    where = "" if len(plan.outputs) == 1 else f" in {fault.label}"
    summaries = [_summarize(label, tensor) for label, tensor in _labelled(plan, inputs)]
    lines = [
        f"{plan.spec.name} made {fault.share}{where}",
        f"  {describe(plan)}, {provenance(plan)}",
        *(f"  {summary}" for summary in summaries if summary),
    ]
    return "\n".join(lines) + _at("called", callsite.find())


def _share(kind: str, bad: Array, values: Any) -> str:
    """Return the number of bad elements and the first one: ``1 NaN of 3, at [2]``."""
    count = int(np.count_nonzero(bad))
    plural = {"NaN": "NaNs", "infinity": "infinities"}[kind]
    number = f"{count} {kind if count == 1 else plural} of {bad.size}"
    if not bad.ndim:
        return f"a value that is {values}"
    first = np.unravel_index(int(np.argmax(bad)), bad.shape)
    at = [int(index) for index in first]
    return f"{number}, {'at' if count == 1 else 'the first at'} {at}: {values[first]}"


def _at(verb: str, site: CallSite | None) -> str:
    return "" if site is None else f"\n{verb} at {site.describe()}"


def _summarize(label: str, tensor: Tensor) -> str:
    """Return a summary of an input's values: ``x is from -1 to 2, all finite``."""
    if tensor.dtype is dt.string:
        return ""
    if not tensor.size:
        return f"{label} is empty"
    values: Array = tensor._placement.device.read(tensor._buffer, tensor.type)
    finite = values[np.isfinite(values)]
    verb = "is"
    if values.dtype.kind == "c":
        finite, verb = np.abs(finite), "has magnitudes"
    parts = []
    if finite.size:
        low, high = _NUMBER(finite.min().item()), _NUMBER(finite.max().item())
        parts.append(low if low == high else f"from {low} to {high}")
    if tensor.dtype in dt.INEXACT:
        nan, inf = np.count_nonzero(np.isnan(values)), np.count_nonzero(np.isinf(values))
        special = [f"{count} {what}" for count, what in ((nan, "NaN"), (inf, "infinite")) if count]
        parts += special or ["all finite"]
    return f"{label} {verb} {', '.join(parts)}"
