"""What a model consists of, how its nodes run, and how long they take."""

from __future__ import annotations

import math
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import InputError, OnnxError
from tensorplug_onnx.values import to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tensorplug_onnx.graph import Graph, Node, ValueInfo
    from tensorplug_onnx.loading import Loaded
    from tensorplug_onnx.values import Host


_TRIED: Final = (
    1,
    2,
    16,
    128,
    1024,
    16384,
)  # sizes of axes whose size nobody knows, in this order
_MOST_DRAWN: Final = 1 << 22  # elements of all inputs, where sizes are tried


class Model(Protocol):
    """What is asked of a model: ``tensorplug_onnx.Model`` has it."""

    @property
    def loaded(self) -> Loaded:
        """The graph, and what the file says of it."""

    @property
    def graph(self) -> Graph:
        """The graph of the model."""

    @property
    def inputs(self) -> tuple[ValueInfo, ...]:
        """Names, dtypes and shapes of the inputs."""

    @property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """Names, dtypes and shapes of the outputs."""

    @property
    def parameters(self) -> Mapping[str, tp.Tensor]:
        """The floating-point initializers by name."""

    def watched(
        self, watch: Callable[[Node], AbstractContextManager[Any]]
    ) -> Callable[..., dict[str, Any]]:
        """Return the model, node by node, each in the context that is returned for it."""


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One run of one node: seconds, and how often each kernel was called, by how it ran."""

    node: Node
    seconds: float
    kernels: Mapping[tuple[str, str], int]

    @property
    def how(self) -> str:
        """Where it ran: ``native``, ``decomposed``, ``fallback``, or ``host`` without kernels."""
        ways = {how for _, how in self.kernels}
        return next((how for how in ("fallback", "decomposed", "widened") if how in ways), "") or (
            "native" if ways else "host"
        )


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """All nodes of one op type: how many, how they ran, and their seconds together."""

    op_type: str
    nodes: int
    how: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A run with inputs drawn at random.

    ``runs``: of the nodes that were reached. ``size``: what each axis in ``guessed`` had.
    ``error``: why the run ended early, or None.
    """

    inputs: Mapping[str, Host]
    runs: tuple[NodeRun, ...]
    guessed: tuple[str, ...]
    size: int
    error: OnnxError | None = None

    def __str__(self) -> str:
        """Return what somebody should know of it; nothing if each size that was guessed is 1."""
        names = ", ".join(self.guessed)
        if self.error is None:
            return f"sizes that nobody gave: {self.size} for {names}" if self.size > 1 else ""
        hint = f"; give sizes of {names}: --size NAME=N, or sizes={{NAME: N}}" if names else ""
        return f"the model could not be run: {self.error}{hint}"


def summary(model: Model) -> str:
    """Return a model in some lines: inputs, outputs, parameters, op types.

    Example:
        >>> print(summary(model))
        inputs      x float32[N,3,224,224]
        outputs     y float32[N,1000]
        parameters  62, 25.6 million elements, 97.5 MiB
        nodes       122: Conv 53, Relu 49, Add 16, ...

    """
    sizes = [math.prod(parameter.shape) for parameter in model.parameters.values()]
    elements = sum(sizes)
    held = sum(parameter.nbytes for parameter in model.parameters.values())
    counts = Counter(node.op_type for node in model.graph.nodes)
    named = ", ".join(f"{op_type} {count}" for op_type, count in counts.most_common())
    opsets = ", ".join(f"{name or 'ai.onnx'} {n}" for name, n in model.loaded.opsets.items())
    return "\n".join(
        [
            f"inputs      {_listed(model.inputs)}",
            f"outputs     {_listed(model.outputs)}",
            f"parameters  {len(sizes)}, {elements:,} elements, {held / 2**20:.1f} MiB",
            f"nodes       {len(model.graph.nodes)}: {named}",
            f"opsets      {opsets}",
        ]
    )


def operator_table(rows: list[OperatorRow]) -> str:
    """Return op types as text: how many nodes, and how they ran.

    Example:
        >>> print(operator_table(operators_of(profile(model, inputs))))
        op type             nodes  runs
        Conv                   53  native
        BatchNormalization     53  decomposed

    """
    width = max([len(row.op_type) for row in rows] + [len("op type")])
    lines = [f"{'op type':{width}}  nodes  runs"]
    lines += [
        f"{row.op_type:{width}}  {row.nodes:5}  {', '.join(row.how)}"
        for row in sorted(rows, key=lambda row: (-row.nodes, row.op_type))
    ]
    return "\n".join(lines)


def _listed(infos: tuple[ValueInfo, ...]) -> str:
    return ", ".join(map(described, infos)) or "none"


def described(info: ValueInfo) -> str:
    """Return an input or output as text: ``x float32[N,3]``."""
    return f"{info.name} {info.type}"


def example_inputs(
    model: Model, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, Host]:
    """Return inputs of the model's shapes, drawn at random.

    Args:
        model: its inputs are tensors of numbers.
        sizes: of symbolic axes by their names, of axes without one as ``"x[0]"``; others are 1.
        seed: of the draw.

    Returns:
        Host arrays by name: floats of a standard normal distribution, integers 0 or 1.

    Raises:
        InputError: an input is no tensor, is text, or has no known rank.

    """
    rng = np.random.default_rng(seed)
    found: dict[str, Host] = {}
    given = sizes or {}
    for info in model.inputs:
        if info.kind != "tensor" or info.shape is None or info.dtype in ("", "string"):
            raise InputError(f"input {described(info)} cannot be drawn: give the inputs")
        shape = tuple(
            size if isinstance(size, int) else given.get(name, 1)
            for size, name in zip(info.shape, _axes(info), strict=True)
        )
        dtype = to_numpy_dtype(info.dtype)
        drawn: Any = (
            rng.standard_normal(shape) if dtype.kind not in "iub" else rng.integers(0, 2, shape)
        )
        found[info.name] = np.asarray(drawn).astype(dtype)
    return found


def _axes(info: ValueInfo) -> list[str]:
    """Return what the axes of an input are called where their sizes are given."""
    shape = info.shape or ()
    return [n if isinstance(n, str) and n else f"{info.name}[{at}]" for at, n in enumerate(shape)]


def unknown_axes(model: Model, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names of the axes of inputs whose size neither the model nor ``sizes`` has."""
    names = [
        name
        for info in model.inputs
        for name, size in zip(_axes(info), info.shape or (), strict=True)
        if not isinstance(size, int) and name not in sizes
    ]
    return tuple(dict.fromkeys(names))


def trial(model: Model, sizes: Mapping[str, int] | None = None) -> Trial:
    """Run a model with inputs drawn at random, and return how far it came.

    A model may not work with axes of 1: other sizes follow until one works. The trial that is
    returned is the one that came furthest.

    Args:
        model: it runs node by node on its device.
        sizes: of axes by their names, as for ``example_inputs``.

    """
    given = dict(sizes or {})
    guessed = unknown_axes(model, given)
    best: Trial | None = None
    for size in _TRIED if guessed else (1,):
        try:
            inputs = example_inputs(model, {**dict.fromkeys(guessed, size), **given})
        except InputError as error:
            return Trial({}, (), guessed, size, error)
        runs: list[NodeRun] = []
        failed = None
        if best is not None and sum(value.size for value in inputs.values()) > _MOST_DRAWN:
            break
        try:
            _profile(model, inputs, runs)
        except OnnxError as error:
            failed = error
        if best is None or failed is None or len(runs) > len(best.runs):
            best = Trial(inputs, tuple(runs), guessed, size, failed)
        if failed is None:
            break
    assert best is not None  # the first size is always tried
    return best


def profile(model: Model, inputs: Mapping[str, Any]) -> list[NodeRun]:
    """Run a model once, node by node, and return the runs of its nodes in their order.

    The device finishes each node before the next one begins, and kernels are traced, so that the
    sum of the times is more than the model needs.
    """
    runs: list[NodeRun] = []
    _profile(model, inputs, runs)
    return runs


def _profile(model: Model, inputs: Mapping[str, Any], runs: list[NodeRun]) -> None:
    """Run a model, and append the run of each node as it ends."""
    depth = 0

    @contextmanager
    def watch(node: Node) -> Iterator[None]:
        nonlocal depth
        depth += 1
        try:
            if depth > 1:  # of a body: what is told is the node of the model
                yield
                return
            tp.synchronize()
            with tp.trace_dispatch() as trace:
                began = time.perf_counter()
                yield
                tp.synchronize()
                seconds = time.perf_counter() - began
        finally:
            depth -= 1
        kernels = Counter((call.name, call.how) for call in trace.calls if call.depth == 0)
        runs.append(NodeRun(node, seconds, kernels))

    model.watched(watch)(inputs)


def operators_of(runs: Sequence[NodeRun], nodes: Iterable[Node] = ()) -> list[OperatorRow]:
    """Return one row for each op type, the one that took longest first.

    Args:
        runs: of nodes.
        nodes: of the model; those of other op types than the runs' were not reached.

    """
    grouped: dict[str, list[NodeRun]] = {}
    for run in runs:
        grouped.setdefault(run.node.op_type, []).append(run)
    rows = [
        OperatorRow(
            op_type,
            len(several),
            tuple(sorted({run.how for run in several})),
            sum(run.seconds for run in several),
        )
        for op_type, several in grouped.items()
    ]
    missing = Counter(node.op_type for node in nodes if node.op_type not in grouped)
    rows += [OperatorRow(name, count, ("not reached",), 0.0) for name, count in missing.items()]
    return sorted(rows, key=lambda row: -row.seconds)
