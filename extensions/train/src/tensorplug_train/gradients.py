"""Gradients of the steps, so that one can learn through them (learning rates, initial weights).

A rule must name what it needs, and all rules of a step need the same. So they are made from the
spec: each pulls the incoming gradients back through the decomposition, which is written with ops.
That costs a step for each input that is differentiated; training itself never asks for it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.plugin import DecompositionEntry, GradientTable
from tensorplug_train.decompositions import decompositions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug import KernelSpec

gradients = GradientTable()


def _rule(entry: DecompositionEntry, wrt: str) -> Callable[..., Any]:
    """Return the rule of one input."""
    spec = entry.spec
    names = spec.output_names
    coming = ["dy"] if len(names) == 1 else [f"dy_{name}" for name in names]
    options = {"attributes"} if "attributes" in entry.asks else set(entry.asks)

    def rule(**values: Any) -> Any:
        inputs = {name: values[name] for name in spec.input_names}
        attributes = {name: values[name] for name in options}

        def step(value: Any) -> Any:
            return entry.function(**{**inputs, wrt: value}, **attributes)

        dy = [values[name] for name in coming]
        _, vjp = tp.vjp(step, inputs[wrt], unconnected="zeros")
        return vjp(dy[0] if len(dy) == 1 else tuple(dy))[0]

    asks = [*coming, *spec.input_names, *options]
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in asks]
    rule.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what it asks for
    return rule


def _fill(table: GradientTable) -> None:
    for entry in decompositions:
        spec: KernelSpec = entry.spec
        for name in spec.input_names:
            table.wrt(spec, name)(_rule(entry, name))


_fill(gradients)
