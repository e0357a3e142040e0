"""A model that runs: what ``load`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import InputError
from tensorplug_onnx.executing import Plans, check_supported, run_graph
from tensorplug_onnx.loading import graphs_in, load_graph
from tensorplug_onnx.optimizing import optimized
from tensorplug_onnx.rules import lookup
from tensorplug_onnx.values import as_host, as_tensor, dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from tensorplug_onnx.graph import Graph, ValueInfo
    from tensorplug_onnx.loading import Loaded
    from tensorplug_onnx.values import Host, Value

__all__ = ["Model", "load"]

Parameters = Mapping[str, tp.Tensor]


def load(source: Any) -> Model:
    """Return the model of a file.

    Args:
        source: a path; the bytes of a file; a binary file; or an ``onnx.ModelProto``. Weights in
            other files are looked for in the folder of the path.

    Returns:
        A model that runs on the active backend.

    Raises:
        ModelError: it is not a valid model.
        ExternalDataError: weights in other files are missing, or outside the folder.
        UnsupportedError: it has operators without a rule; the message names all of them.

    Example:
        >>> model = tensorplug_onnx.load("digits.onnx")
        >>> outputs = model(images)
        >>> outputs["logits"].shape
        (8, 10)

    """
    loaded = load_graph(source)
    check_supported(loaded.graph)
    return Model(loaded, _parameters(loaded.graph))


@dataclass(frozen=True)
class Model:
    """A function from named inputs to named outputs, and its parameters.

    Args:
        loaded: the graph.
        parameters: the floating-point initializers by name: a tree, for ``tp.grad``.
        device: the device that it runs on; None for the one that is active at the call.

    """

    loaded: Loaded
    parameters: Parameters
    device: str | None = None
    _plans: Plans = field(default_factory=Plans, repr=False, compare=False)
    _compiled: Callable[..., dict[str, Any]] | None = field(default=None, repr=False)

    @property
    def graph(self) -> Graph:
        """The graph of the model."""
        return self.loaded.graph

    @property
    def inputs(self) -> tuple[ValueInfo, ...]:
        """Names, dtypes and shapes of the inputs."""
        return self.graph.inputs

    @property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """Names, dtypes and shapes of the outputs."""
        return self.graph.outputs

    def __call__(self, *args: Any, **named: Any) -> dict[str, Any]:
        """Run the model.

        Args:
            *args: the inputs in their order, or one mapping from names to inputs: tensors, NumPy
                arrays, or what has ``__dlpack__``. Sequences are lists of these.
            **named: inputs by name.

        Returns:
            The outputs by name: tensors of the active device, arrays where it lacks the dtype;
            lists of them for sequences; None for an optional without a value.

        Raises:
            InputError: an input is missing, unknown, or of another dtype or shape; or the model
                is compiled, and the device lacks the dtype of an input.
            NodeError: a node failed.

        """
        given = self._bound(args, named)
        with self._active():
            values = {name: _received(value) for name, value in given.items()}
            if self._compiled is not None:
                _check_held(values)
                return self._compiled(values)
            return self.apply(self.parameters, values)

    def apply(self, parameters: Parameters, inputs: Mapping[str, Value]) -> dict[str, Any]:
        """Return the outputs for other parameters: a pure function of both trees.

        Args:
            parameters: as ``Model.parameters``.
            inputs: tensors by name.

        Example:
            >>> def loss(parameters):
            ...     return tp.mean(model.apply(parameters, {"x": x})["y"])
            >>> gradients = tp.grad(loss)(model.parameters)

        """
        return _outputs(self.graph, {**parameters, **inputs}, self._plans)

    def compile(self) -> Model:
        """Return the model as one compiled program for each set of input shapes.

        Its parameters are constants of the program, which has less to do: see ``optimizing``. To
        train a model, compile the function that takes its gradients, with ``apply`` in it.

        Raises, when called:
            ValueNeededError: shapes depend on the values of inputs.

        """
        parameters = {name: as_host(value) for name, value in self.parameters.items()}
        graph = optimized(self.graph, parameters)
        constants = _parameters(graph)
        plans = Plans()

        def program(inputs: Mapping[str, Value]) -> dict[str, Any]:
            return _outputs(graph, {**constants, **inputs}, plans)

        return replace(self, _compiled=tp.compile(program))

    def to(self, device: str) -> Model:
        """Return the model on a device, its parameters too.

        Args:
            device: the name of a backend, or of one of its devices (``"opencl:1"``).

        """
        with tp.use_backend(device):
            parameters = {
                name: as_tensor(as_host(value)) for name, value in self.parameters.items()
            }
        return replace(self, parameters=parameters, device=device)

    def _active(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.device is None else tp.use_backend(self.device)

    def _bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs by name, after a look at their names, dtypes and shapes."""
        names = [info.name for info in self.inputs]
        if len(args) == 1 and isinstance(args[0], Mapping):
            given = {**args[0], **named}
        elif len(args) > len(names):
            raise InputError(f"{len(args)} inputs are given, the model has {_listed(names)}")
        else:
            given = {**dict(zip(names, args, strict=False)), **named}
        defaults = {info.name: info for info in self.graph.defaults}
        unknown = given.keys() - set(names) - self.parameters.keys() - defaults.keys()
        if unknown:
            wrong = min(unknown)
            raise InputError(f"there is no input {wrong!r}; the model has {_listed(names)}")
        needed = (info.name for info in self.inputs if info.kind != "optional")
        lacking = [name for name in needed if name not in given]
        if lacking:
            raise InputError(f"input {lacking[0]!r} is missing")
        for name in names:
            given.setdefault(name, None)
        for info in (*self.inputs, *(defaults[name] for name in defaults.keys() & given.keys())):
            _check(info, given[info.name])
        return given


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _received(value: Any) -> Any:
    """Return an input as a value: text and tensors as they are, foreign arrays by DLPack."""
    if value is None or isinstance(value, tp.Tensor):
        return value
    if isinstance(value, list | tuple) and any(_is_array(one) for one in value):
        return [_received(one) for one in value]
    if isinstance(value, list | tuple) and not value:
        return []
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        return tp.from_dlpack(value)
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        array = array.astype(np.dtypes.StringDType())
    return as_tensor(array)


def _check_held(values: Mapping[str, Any]) -> None:
    """Refuse inputs on the host, where they stay if the device lacks their dtype."""
    for name, value in values.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, np.ndarray):
                raise InputError(
                    f"input {name!r} is {dtype_of(one)}, which {tp.get_backend()!r} lacks: a "
                    "compiled model cannot take it, the model without compile() can"
                )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | tp.Tensor) or hasattr(value, "__dlpack__")


def _check(info: ValueInfo, value: Any) -> None:
    """Compare an input with what the model says of it."""
    if info.kind != "tensor" or not isinstance(value, np.ndarray | tp.Tensor):
        return
    dtype, shape = dtype_of(value), tuple(value.shape)
    if info.dtype and dtype != info.dtype:
        raise InputError(f"input {info.name!r} is {dtype}, must be {info.dtype}")
    if info.shape is None:
        return
    fits = len(shape) == len(info.shape) and all(
        not isinstance(wanted, int) or size == wanted
        for size, wanted in zip(shape, info.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("?" if size is None else str(size) for size in info.shape)
        raise InputError(f"input {info.name!r} has shape {list(shape)}, must be [{wanted}]")


def _outputs(graph: Graph, values: Mapping[str, Value], plans: Plans) -> dict[str, Any]:
    """Run a graph; return its outputs by name."""
    names = (info.name for info in graph.outputs)
    found = run_graph(graph, values, plans)
    return {name: as_tensor(value) for name, value in zip(names, found, strict=True)}


def _parameters(graph: Graph) -> dict[str, Any]:
    """Return the initializers that are parameters, on the device.

    They are floating-point tensors, and no node reads them on the host.
    """
    read = _read_on_host(graph)
    return {
        name: as_tensor(array)
        for name, array in graph.initializers.items()
        if name not in read and _is_floating(array)
    }


def _is_floating(array: Host) -> bool:
    return dtype_of(array) in ("float16", "bfloat16", "float32", "float64")


def _read_on_host(graph: Graph) -> set[str]:
    found: set[str] = set()
    for node in graph.nodes:
        rule = lookup(node.op_type, node.domain, node.version)
        if rule is None:
            found |= set(node.inputs)
        else:
            found |= {node.inputs[at] for at in rule.read_on_host(len(node.inputs))}
        for inner in graphs_in(node.attributes):
            found |= _read_on_host(inner)
    return found
