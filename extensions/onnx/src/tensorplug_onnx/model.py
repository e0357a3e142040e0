"""A model that runs: what ``load`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug_onnx.binding import bound, check_names
from tensorplug_onnx.compiling import CompiledGraph
from tensorplug_onnx.errors import InputError
from tensorplug_onnx.executing import Plans, check_supported, outputs_of
from tensorplug_onnx.inspecting import (
    described,
    operator_table,
    operators_of,
    profile,
    summary,
    trial,
)
from tensorplug_onnx.loading import graphs_in, load_graph
from tensorplug_onnx.optimizing import optimized
from tensorplug_onnx.rules import lookup
from tensorplug_onnx.values import as_host, as_tensor, dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tensorplug_onnx.graph import Graph, Node, ValueInfo
    from tensorplug_onnx.loading import Loaded
    from tensorplug_onnx.values import Host, Value


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
        >>> outputs["scores"].shape
        (8, 10)

    """
    loaded = load_graph(source)
    check_supported(loaded.graph)
    return Model(loaded, _parameters(loaded.graph))


@dataclass(frozen=True, repr=False)
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
    _plans: Plans = field(default_factory=Plans, compare=False)
    _compiled: CompiledGraph | None = field(default=None, compare=False)

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

    def __call__(self, /, *args: Any, **named: Any) -> dict[str, Any]:
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
        with self._active():
            if self._compiled is not None:
                return self._compiled(bound(self.graph, None, args, named))
            parameters = self.parameters
            values = bound(self.graph, parameters, args, named)
            return outputs_of(self.graph, {**parameters, **values}, self._plans, parameters)

    def apply(self, parameters: Parameters, inputs: Mapping[str, Value]) -> dict[str, Any]:
        """Return the outputs for other parameters: a pure function of both trees.

        Args:
            parameters: as ``Model.parameters``; those that are left out keep their values.
            inputs: tensors by name.

        Raises:
            InputError: an input is missing; there is no such parameter.
            NodeError: a node failed.

        Example:
            >>> def loss(parameters):
            ...     return tp.mean(model.apply(parameters, {"x": x})["y"])
            >>> gradients = tp.grad(loss)(model.parameters)

        """
        unknown = parameters.keys() - self.parameters.keys()
        if unknown:
            raise InputError(f"there is no parameter {min(unknown)!r}")
        check_names(self.graph, inputs)
        absent = {info.name: None for info in self.inputs if info.name not in inputs}
        values = {**parameters, **absent, **inputs}
        return outputs_of(self.graph, values, self._plans, self.parameters)

    def compile(self) -> Model:
        """Return the model as one compiled program for each set of input shapes.

        Its parameters are constants of the program, which has less to do: see ``optimizing``. To
        train a model, compile the function that takes its gradients, with ``apply`` in it.

        Inputs that decide shapes (a shape, axes, a count: tensors of at most one axis) are static:
        each of their values has a program. The other inputs, and models in which the values of
        inputs decide nothing of the kind, have one for each set of shapes.

        Raises:
            InputError: in a call: the device lacks the dtype of an input; a parameter is given.
            ValueNeededError: in a call: shapes depend on the values of larger inputs.

        Example:
            >>> model = tensorplug_onnx.load("digits.onnx").compile()
            >>> [model(images[:n])["scores"].shape for n in (5, 6)]
            [(5, 10), (6, 10)]

        """
        parameters = {name: as_host(value) for name, value in self.parameters.items()}
        with self._active():
            graph = optimized(self.graph, parameters)
        same = {
            name: self.parameters[name]
            if graph.initializers[name] is parameters.get(name)
            else None
            for name in _parameter_names(graph)
        }
        return replace(self, _compiled=CompiledGraph(graph, same))

    def to(self, device: str) -> Model:
        """Return the model on a device, its parameters too; a compiled model is compiled for it.

        Args:
            device: the name of a backend, or of one of its devices (``"opencl:1"``).

        """
        with tp.use_backend(device):
            parameters = {
                name: as_tensor(as_host(value)) for name, value in self.parameters.items()
            }
        return replace(self, parameters=parameters, device=device, _plans=Plans())

    def summary(
        self, inputs: Mapping[str, Any] | None = None, *, sizes: Mapping[str, int] | None = None
    ) -> str:
        """Return the model as text: inputs, outputs, parameters, and how its op types run.

        The model runs once on its device, to see whether the kernels of an op type are native or
        decomposed there, or it is computed on the host.

        Args:
            inputs: to run it with, by name; drawn at random by default.
            sizes: the sizes of symbolic axes of inputs that are drawn, by their names, of those
                without a name as ``"x[0]"``. For others, some sizes are tried. If none works, the
                last line says so, and op types that were not reached have no kernels.

        Raises:
            InputError: the inputs do not fit.

        Example:
            >>> print(tensorplug_onnx.load("digits.onnx").summary(sizes={"N": 4}))
            inputs      images float32[N,1,8,8]
            outputs     scores float32[N,10]
            parameters  6, 9,930 elements, 0.0 MiB
            nodes       7: Conv 2, Relu 2, MaxPool 1, Flatten 1, Gemm 1
            opsets      ai.onnx 17
            <BLANKLINE>
            op type  nodes  runs
            Conv         2  native
            ...

        """
        if inputs is not None:
            return f"{summary(self)}\n\n{operator_table(operators_of(profile(self, inputs)))}"
        tried = trial(self, sizes)
        table = operator_table(operators_of(tried.runs, self.graph.nodes))
        return f"{summary(self)}\n\n{table}\n{tried}".rstrip()

    def watched(self, watch: Callable[[Node], AbstractContextManager[Any]]) -> Model:
        """Return the model that runs node by node, each in the context that ``watch`` returns.

        Args:
            watch: is called with each node before it runs, also with those of bodies.

        """
        return replace(self, _plans=Plans(watch), _compiled=None)

    def __repr__(self) -> str:
        """Return what the model takes, returns and consists of."""
        inputs = ", ".join(map(described, self.inputs))
        outputs = ", ".join(map(described, self.outputs))
        return f"<Model ({inputs}) -> ({outputs}): {len(self.graph.nodes)} nodes>"

    def _active(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.device is None else tp.use_backend(self.device)


def _parameters(graph: Graph) -> dict[str, Any]:
    """Return the initializers that are parameters, on the device."""
    return {name: as_tensor(graph.initializers[name]) for name in _parameter_names(graph)}


def _parameter_names(graph: Graph) -> list[str]:
    """Return which initializers are parameters.

    They are floating-point tensors, and no node reads them on the host.
    """
    read = _read_on_host(graph)
    return [
        name
        for name, array in graph.initializers.items()
        if name not in read and _is_floating(array)
    ]


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
