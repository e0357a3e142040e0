"""The check for NaN and infinities: an observer that raises where the first one comes from."""

from __future__ import annotations

import cmath
import copy
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from tensorplug.autodiff.tape import CallNode, OutputNode, Recipe
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import NonFiniteError
from tensorplug.observers import callsite
from tensorplug.observers.observation import describe, provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.autodiff.tape import Node, Step
    from tensorplug.engine.plans import Plan
    from tensorplug.observers.callsite import CallSite

__all__ = ["NonFiniteCheck"]

Array = np.ndarray[Any, np.dtype[Any]]


class _Inside(threading.local):
    """What the calls of this thread are inside of.

    ``kernel``: a decomposition or a fallback. ``suspects``: a gradient rule (None outside), and
    then what its calls did that the rule may yet make good.
    """

    kernel: bool = False
    suspects: list[str] | None = None


class NonFiniteCheck:
    """Raises ``NonFiniteError`` at the call that made a NaN or an infinity from others.

    A NaN must have been in an input; an infinity may also come from another infinity or a NaN.
    Whether one was in an input is asked of the input as a whole, not element by element.

    Inside a decomposition nothing is checked, only its result. A gradient rule's result is
    checked against its arguments, and the error shows the first of its calls that went wrong.
    """

    def __init__(self, *, nan: bool, inf: bool) -> None:
        self._nan = nan
        self._inf = inf
        self._inside = _Inside()

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run, and look at what came out unless the call is part of another."""
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
            # Not from a variable: its traceback would hold this stack frame, and the frame it.
            raise NonFiniteError(message)
        inside.suspects.append(message)
        return outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Refuse data that holds a NaN; an infinity may be meant, as in a mask.

        Raises:
            NonFiniteError: with the place of the first one and the line of Python.

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
        """Guard the gradient rules of a call that the tape has just taken in."""
        nodes = dict.fromkeys(_call_node(output._node) for output in outputs)
        for node in nodes:
            if node is not None and node.plan is plan:
                node.recipe = self._guarded(node.recipe, plan.spec.name, callsite.find())

    # Gradient rules -------------------------------------------------------------------

    def _guarded(self, recipe: Recipe, kernel: str, site: CallSite | None) -> Recipe:
        """Return a recipe whose rules are checked; other calls of the plan share the old one."""
        guarded = copy.copy(recipe)
        guarded.steps = [self._guarded_step(step, kernel, site) for step in recipe.steps]
        return guarded

    def _guarded_step(self, step: Step, kernel: str, site: CallSite | None) -> Step:
        guarded = copy.copy(step)
        what = f"the gradient of {kernel!r} with respect to {step.name!r}"
        guarded.rule = partial(self._pull, step.rule, what, site)
        return guarded

    def _pull(
        self, rule: Callable[..., Any], what: str, site: CallSite | None, *arguments: Any
    ) -> Any:
        """Call a gradient rule and look at its result, if this check is still on here."""
        if not self._is_on():
            return rule(*arguments)
        inside = self._inside
        before, inside.suspects = inside.suspects, []
        try:
            result = rule(*arguments)
            suspects = inside.suspects
        finally:
            inside.suspects = before
        results = result if isinstance(result, list | tuple) else [result]
        given = [("", tensor) for argument in arguments for tensor in _tensors(argument)]
        fault = self._fault([("", item) for item in results if isinstance(item, Tensor)], given)
        if fault is None:
            return result
        recorded = _at("recorded", site)
        if suspects:
            raise NonFiniteError(f"{suspects[0]}\nin {what}{recorded}")
        raise NonFiniteError(f"{what} has {fault.share}{recorded}")

    def _is_on(self) -> bool:
        context = current_context()
        return self in (*context.observers, *getattr(context.engine, "observers", ()))

    # Looking --------------------------------------------------------------------------

    def _fault(
        self, made: Sequence[tuple[str, Any]], given: Sequence[tuple[str, Any]], plan: Any = None
    ) -> _Fault | None:
        """Return what is wrong with ``made`` in the light of ``given``; labels with tensors."""
        for label, tensor in made:
            values = _inexact(tensor)
            if values is None or np.isfinite(values).all():
                continue
            nan, inf = np.isnan(values), np.isinf(values)
            if self._nan and nan.any() and not any(_has_nan(item) for _, item in given):
                return _Fault("NaN", label, nan, values)
            if self._inf and inf.any() and not _excused(given, plan):
                return _Fault("infinity", label, inf, values)
        return None


class _Fault(NamedTuple):
    """What is wrong with an output: where ``bad`` is True its ``values`` should not be so."""

    kind: Literal["NaN", "infinity"]
    label: str
    bad: Array
    values: Array

    @property
    def share(self) -> str:
        """How many there are, and which is the first."""
        return _share(self.kind, self.bad, self.values)


def _inexact(tensor: Tensor) -> Array | None:
    """Return the values of what can hold a NaN; this waits for the device."""
    if tensor.dtype not in dt.INEXACT:
        return None
    return tensor._placement.device.backend.to_host(tensor._buffer)


def _has_nan(tensor: Tensor) -> bool:
    """Return whether there is a NaN that somebody computed.

    One that the caller wrote as a number beside a tensor excuses nothing: like data with a NaN
    it is where the trouble begins.
    """
    values = _inexact(tensor)
    return values is not None and bool(np.isnan(values).any()) and not _is_constant(tensor)


def _is_constant(tensor: Tensor) -> bool:
    constants = list(tensor._placement.device.constants.values())
    return any(constant is tensor for constant in constants)


def _excused(given: Sequence[tuple[str, Tensor]], plan: Plan | None) -> bool:
    """Return whether an infinity may come out, because one (or a NaN) went in."""
    attributes = () if plan is None else plan.attributes.values()
    if any(
        isinstance(attribute, float | complex) and cmath.isinf(attribute)
        for attribute in attributes
    ):
        return True
    arrays = (_inexact(item) for _, item in given)
    return any(values is not None and not np.isfinite(values).all() for values in arrays)


def _tensors(given: Any) -> Iterator[Tensor]:
    """Yield the tensors of an input: itself, those of a list, none if it is absent."""
    for item in given if isinstance(given, list) else [given]:
        if isinstance(item, Tensor):
            yield item


def _labelled(plan: Plan, inputs: Sequence[Any]) -> Iterator[tuple[str, Tensor]]:
    for name, given in zip(plan.spec.input_names, inputs, strict=True):
        for at, tensor in enumerate(_tensors(given)):
            yield (f"{name}[{at}]" if isinstance(given, list) else name), tensor


def _call_node(node: Node | None) -> CallNode | None:
    if isinstance(node, OutputNode):
        node = node.parents[0]
    return node if isinstance(node, CallNode) else None


# Words ----------------------------------------------------------------------------------

_NUMBER: Final = "{:.6g}".format


def _message(plan: Plan, inputs: Sequence[Any], fault: _Fault) -> str:
    where = "" if len(plan.outputs) == 1 else f" in {fault.label}"
    accounts = [_account(label, tensor) for label, tensor in _labelled(plan, inputs)]
    lines = [
        f"{plan.spec.name} made {fault.share}{where}",
        f"  {describe(plan)}, {provenance(plan)}",
        *(f"  {account}" for account in accounts if account),
    ]
    return "\n".join(lines) + _at("called", callsite.find())


def _share(kind: str, bad: Array, values: Any) -> str:
    """Return how many elements are bad, and which is the first: ``1 NaN of 3, at [2]``."""
    count = int(np.count_nonzero(bad))
    plural = {"NaN": "NaNs", "infinity": "infinities"}[kind]
    number = f"{count} {kind if count == 1 else plural} of {bad.size}"
    if not bad.ndim:
        return f"a value that is {values}"
    first = np.unravel_index(int(np.argmax(bad)), bad.shape)
    at = [int(item) for item in first]
    return f"{number}, {'at' if count == 1 else 'the first at'} {at}: {values[first]}"


def _at(verb: str, site: CallSite | None) -> str:
    return "" if site is None else f"\n{verb} at {site.describe()}"


def _account(label: str, tensor: Tensor) -> str:
    """Return what an input's values are like: ``x is from -1 to 2, all finite``."""
    if tensor.dtype is dt.string:
        return ""
    if not tensor.size:
        return f"{label} is empty"
    values: Array = tensor._placement.device.backend.to_host(tensor._buffer)
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
        found = [f"{count} {what}" for count, what in ((nan, "NaN"), (inf, "infinite")) if count]
        parts += found or ["all finite"]
    return f"{label} {verb} {', '.join(parts)}"
