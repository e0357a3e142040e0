"""What the layers of a model return, hold and compute."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import tensorplug as tp
from tensorplug.plugin import tree
from tensorplug_train.layers.applying import apply, initial_state, step
from tensorplug_train.layers.sequential import Sequential, is_function

if TYPE_CHECKING:
    from collections.abc import Callable


class Row(NamedTuple):
    """A layer in a summary, with all that is in it.

    ``path`` from the model, and ``kind``, the class; ``output``: the types of the tensors that it
    returns; ``parameters``: how many numbers it holds, in ``parameter_bytes`` bytes;
    ``output_bytes``: the size of what it returns. ``flops``: two for each multiplication with an
    addition in the products of matrices, convolutions, attention and Einstein sums that it runs.
    """

    path: str
    kind: str
    output: str
    parameters: int
    flops: int
    parameter_bytes: int
    output_bytes: int


@dataclass(frozen=True)
class Summary:
    """The rows of a model and its layers, in the order in which they are called.

    A row counts what is in the layers inside, too: the first one is the model's total. ``str()``
    is a table of text, and rich prints it as a table.

    ``rows``: one for each layer.

    Examples:
        >>> layers = tp.train.layers
        >>> layers.summary(layers.Linear(tp.ones((64, 10))), tp.zeros((8, 64))).total.flops
        10240

    """

    rows: list[Row] = field(default_factory=list)

    @property
    def total(self) -> Row:
        """The row of the model."""
        return self.rows[0]

    def __str__(self) -> str:
        lines = [_HEADER, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = ["  ".join(map(_aligned, cells, widths, range(99))).rstrip() for cells in lines]
        return "\n".join([texts[0], "-" * (sum(widths) + 2 * len(widths) - 2), *texts[1:]])

    def __rich__(self) -> Any:
        """Return a table of rich."""
        from rich.table import Table  # only rich calls this

        table = Table()
        for at, name in enumerate(_HEADER):
            table.add_column(name, justify="left" if at < _TEXTS else "right")
        for row in self.rows:
            table.add_row(*_cells(row))
        return table


_HEADER: Final = ("layer", "kind", "output", "parameters", "FLOPs", "bytes", "output bytes")
_TEXTS: Final = 3  # columns


def _cells(row: Row) -> tuple[str, ...]:
    return (*row[:_TEXTS], *(f"{number:,}" for number in row[_TEXTS:]))


def _aligned(cell: str, width: int, at: int) -> str:
    return cell.ljust(width) if at < _TEXTS else cell.rjust(width)


def summary(model: Any, *inputs: Any, state: Any = None) -> Summary:
    """Return a table of the layers of a model: shapes, parameters, FLOPs and memory.

    It runs the model once, as in inference, and counts its kernel calls.

    Args:
        model: a layer, or a model of layers.
        inputs: what the model is called with.
        state: that of the model; None for ``initial_state(model)``.

    Raises: the errors of the model.

    Examples:
        >>> layers = tp.train.layers
        >>> a, b = tp.random.split(tp.random.key(0))
        >>> model = layers.Sequential.of(
        ...     layers.Linear.init(a, 64, 32), tp.nn.relu, layers.Linear.init(b, 32, 10)
        ... )
        >>> print(layers.summary(model, tp.zeros((8, 64))))
        layer          kind        output         parameters   FLOPs  bytes  output bytes
        ---------------------------------------------------------------------------------
        Sequential     Sequential  float32[8,10]       2,410  37,888  9,640           320
        Sequential[0]  Linear      float32[8,32]       2,080  32,768  8,320         1,024
        Sequential[1]  relu        float32[8,32]           0       0      0         1,024
        Sequential[2]  Linear      float32[8,10]         330   5,120  1,320           320

    """
    with tp.profile() as profile:
        recorder = _Recorder(profile)
        recorded = recorder.recorded(model, type(model).__name__)
        if hasattr(model, "apply") and len(inputs) == 1:
            own = initial_state(model) if state is None else state
            apply(recorded, inputs[0], own)
        else:
            recorded(*inputs)
    return Summary([call.row() for call in recorder.calls.values()])


@dataclass
class _Call:
    """A layer, what it returned last, and the FLOPs of all its calls."""

    path: str
    layer: Any
    output: Any = None
    flops: int = 0

    def row(self) -> Row:
        """Return the row of the layer."""
        held = [leaf for leaf in tree.flatten(self.layer)[0] if isinstance(leaf, tp.Tensor)]
        held = list({id(tensor): tensor for tensor in held}.values())  # shared ones count once
        returned = [leaf for leaf in tree.flatten(self.output)[0] if isinstance(leaf, tp.Tensor)]
        return Row(
            self.path,
            _kind(self.layer),
            ", ".join(str(tensor.type) for tensor in returned),
            sum(tensor.size for tensor in held),
            self.flops,
            sum(tensor.nbytes for tensor in held),
            sum(tensor.nbytes for tensor in returned),
        )


def _kind(layer: Any) -> str:
    if isinstance(layer, partial):
        return _kind(layer.func)
    return str(getattr(layer, "__name__", type(layer).__name__))


class _Recorder:
    """Makes models that note the calls of their layers."""

    def __init__(self, profile: Any) -> None:
        self.calls: dict[str, _Call] = {}
        self._profile = profile
        self._open: list[str] = []

    def recorded(self, model: Any, path: str) -> Any:
        """Return a copy of a model whose layers are of classes that note their calls."""
        opened = tree.level(model)
        if opened is None:
            return model
        names, children, build, _ = opened
        functions = isinstance(model, Sequential)  # which are no children, but have rows
        if functions:
            names, children = range(len(model.layers)), model.layers
            build = lambda parts: Sequential(tuple(parts))  # noqa: E731  # as the other one
        parts = []
        for name, child in zip(names, children, strict=True):
            make = self._function if functions and is_function(child) else self.recorded
            parts.append(make(child, step(model, path, name)))
        copied: Any = build(parts)
        methods = {
            name: self._method(getattr(type(model), name), model, path)
            for name in ("__call__", "apply")
            if any(name in vars(base) for base in type(model).__mro__)  # not type's own
        }
        if not methods:
            return copied
        noting = copy.copy(copied)
        kind = type(type(model).__name__, (type(model),), {"__slots__": (), **methods})
        object.__setattr__(noting, "__class__", kind)
        return noting

    def _function(self, function: Any, path: str) -> Callable[..., Any]:
        return lambda *args: self._noted(path, function, lambda: function(*args))

    def _method(self, method: Any, layer: Any, path: str) -> Callable[..., Any]:
        def call(this: Any, *args: Any, **options: Any) -> Any:
            return self._noted(path, layer, lambda: method(this, *args, **options), method)

        return call

    def _noted(self, path: str, layer: Any, run: Callable[[], Any], method: Any = None) -> Any:
        if self._open and self._open[-1] == path:  # a call that is an apply
            return run()
        call = self.calls.setdefault(path, _Call(path, layer))
        self._open.append(path)
        first = len(self._profile.kernels)
        try:
            result = run()
        finally:
            self._open.pop()
        with_state = getattr(method, "__name__", "") == "apply"
        call.output = result[0] if with_state else result
        call.flops += _flops(self._profile.kernels[first:])
        return result


def _flops(records: list[Any]) -> int:
    """Return the FLOPs of kernel calls, those inside of a counted call left out.

    A call follows the calls inside of it, so they are read from the end.
    """
    total, outer = 0, math.inf
    for record in reversed(records):
        if record.depth > outer:
            continue
        outer = math.inf
        count = _COUNTS.get(record.name)
        if count is not None:
            outer = record.depth
            total += 2 * count(record)
    return total


def _matrices(record: Any) -> int:
    a = record.inputs[0].shape
    summed = a[-2] if record.attributes["transpose_a"] else a[-1]
    return int(math.prod(record.outputs[0].shape) * summed)


def _attention(record: Any) -> int:
    q, k = record.inputs[0].shape, record.inputs[1].shape
    out = record.outputs[0].shape
    return int(math.prod(out[:-1]) * k[-2] * (q[-1] + out[-1]))


def _contraction(record: Any) -> int:
    terms = record.attributes["equation"].partition("->")[0].split(",")
    extents = {
        label: size
        for term, x in zip(terms, record.inputs[0], strict=True)
        for label, size in zip(term, x.shape, strict=True)
        if size != 1  # it broadcasts
    }
    return math.prod(extents.values()) if len(terms) > 1 else 0


# The multiplications with an addition of a call, by kernel. Filters are [*window, in, out].
_COUNTS: Final[dict[str, Callable[[Any], int]]] = {
    **dict.fromkeys(("BatchMatMul", "_FusedMatMul"), _matrices),
    **dict.fromkeys(
        ("Conv2D", "Conv3D", "FusedConv2D"),
        lambda r: math.prod(r.outputs[0].shape) * math.prod(r.inputs[1].shape[:-1]),
    ),
    **dict.fromkeys(
        ("DepthwiseConv2dNative", "FusedDepthwiseConv2D"),
        lambda r: math.prod(r.outputs[0].shape) * math.prod(r.inputs[1].shape[:2]),
    ),
    "DepthwiseConv2dNativeBackpropInput": (
        lambda r: math.prod(r.inputs[0].shape) * math.prod(r.inputs[1].shape[:2])
    ),
    **dict.fromkeys(
        ("Conv2DBackpropInput", "Conv3DBackpropInputV2"),
        lambda r: math.prod(r.inputs[0].shape) * math.prod(r.inputs[1].shape[:-1]),
    ),
    **dict.fromkeys(
        ("LSTM", "GRU"), lambda r: math.prod(r.inputs[0].shape) * r.inputs[1].shape[-2]
    ),
    "ScaledDotProductAttention": _attention,
    "Einsum": _contraction,
}
