"""A model as one compiled program for each set of input shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import InputError, NodeError, ValueNeededError
from tensorplug_onnx.executing import Plans, outputs_of
from tensorplug_onnx.shaping import shaping_inputs
from tensorplug_onnx.values import as_host, dtype_of, to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tensorplug_onnx.graph import Graph
    from tensorplug_onnx.values import Host, Value


# The value of a static input as a tree of hashable leaves: name, dtype, shape and bytes.
_Static = tuple[str, str, tuple[int, ...], bytes]


class CompiledGraph:
    """A function from inputs to outputs, compiled for each set of shapes.

    Inputs that decide shapes or branches (at most one axis: a shape, a count, axes, a flag) are
    *static* once a program cannot be made without their values: then each of their values has a
    program.

    Args:
        graph: its initializers are constants of the programs.
        parameters: the names of those that are tensors, however small; with tensors of the same
            values where there are some, which are not copied once more.

    """

    def __init__(
        self,
        graph: Graph,
        parameters: Mapping[str, tp.Tensor | None],
    ) -> None:
        self._graph = graph
        self._parameters = parameters
        self._plans = Plans()
        for name, tensor in parameters.items():
            if tensor is not None:
                self._plans.put(graph.initializers[name], tensor)
        self._shaping: frozenset[str] = frozenset()
        self._program = self._compiled()
        self._with_values: dict[tuple[str, ...], Any] = {}

    def __call__(self, inputs: Mapping[str, Value]) -> dict[str, Any]:
        """Return the outputs by name.

        Raises:
            InputError: the device lacks the dtype of an input.
            ValueNeededError: shapes depend on the values of inputs of more than one axis.

        """
        if self._shaping:
            return self._with_static(inputs, self._shaping)
        try:
            self._check_held(inputs)
            found: dict[str, Any] = self._program(inputs)
        except (ValueNeededError, InputError, NodeError):
            shaping = shaping_inputs(self._graph)
            if not any(_can_be_static(inputs[name]) for name in shaping if name in inputs):
                raise
            found = self._with_static(inputs, shaping)
            self._shaping = shaping
        return found

    def _compiled(self) -> Any:
        """Return a compiled function of the inputs, of which some may be static."""
        graph, plans = self._graph, self._plans

        def program(inputs: Mapping[str, Value], static: Sequence[_Static] = ()) -> dict[str, Any]:
            parameters = {
                name: plans.on_device(graph.initializers[name]) for name in self._parameters
            }
            known = dict(map(_restored, static))
            return outputs_of(graph, {**parameters, **inputs, **known}, plans, parameters)

        program.__qualname__ = f"model {graph.name!r}"  # in warnings
        return tp.compile(program)

    def _with_static(
        self, inputs: Mapping[str, Value], shaping: Collection[str]
    ) -> dict[str, Any]:
        """Run the program for the values of the inputs among ``shaping``."""
        names = tuple(sorted(name for name in shaping if _can_be_static(inputs.get(name))))
        if names not in self._with_values:
            self._with_values[names] = self._compiled()
        static = tuple(_static(name, inputs[name]) for name in names)
        others = {name: value for name, value in inputs.items() if name not in names}
        self._check_held(others)
        found: dict[str, Any] = self._with_values[names](others, static)
        return found

    def _check_held(self, inputs: Mapping[str, Value]) -> None:
        """Refuse inputs on the host, where they stay if the device lacks their dtype."""
        for name, value in inputs.items():
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, np.ndarray):
                    raise InputError(
                        f"input {name!r} is {dtype_of(one)}, which {tp.get_backend()!r} lacks: a "
                        "compiled model cannot take it, the model without compile() can"
                    )


def _can_be_static(value: Value) -> bool:
    return isinstance(value, np.ndarray | tp.Tensor) and value.ndim <= 1 and _is_number(value)


def _is_number(value: tp.Tensor | Host) -> bool:
    return dtype_of(value) != "string"


def _static(name: str, value: Value) -> _Static:
    try:
        array = as_host(value)
    except tp.errors.DataNeededError as error:
        raise ValueNeededError(
            f"input {name!r} decides shapes: a compiled model must know its value: {error}"
        ) from error
    return name, dtype_of(array), tuple(array.shape), array.tobytes()


def _restored(static: _Static) -> tuple[str, Host]:
    name, dtype, shape, data = static
    return name, np.frombuffer(data, to_numpy_dtype(dtype)).reshape(shape)
