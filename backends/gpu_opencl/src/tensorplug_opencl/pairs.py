"""Complex numbers as pairs of real ones: kernels that treat both parts alike.

A complex array is a real one with a last axis of 2 more, in the same memory. An operation that is
linear with real coefficients and never mixes elements along that axis, such as a sum, runs on it
unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import KernelEntry, TensorType, specs
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.memory.buffers import DeviceBuffer


# The attributes that hold the output's shape change with it.
_SHAPED: Final = {specs.SCATTER_ND.name: "shape"}
PAIRED: Final = frozenset(
    spec.name
    for spec in (
        specs.ADD,
        specs.SUB,
        specs.NEG,
        specs.ROUND,
        specs.SUM,
        specs.MEAN,
        specs.CUMSUM,
        specs.SCATTER_ND,
        specs.UNSORTED_SEGMENT_SUM,
    )
)


def pair_type(type_: TensorType) -> TensorType:
    """Return the type of a complex array as a real one; leave other types unchanged."""
    if type_.dtype not in dt.COMPLEX:
        return type_
    return TensorType(dt.real_part(type_.dtype), (*type_.shape, 2))


def as_pairs(buffer: DeviceBuffer) -> DeviceBuffer:
    """Return a complex buffer's memory as real numbers; leave other buffers unchanged."""
    if buffer.dtype not in dt.COMPLEX:
        return buffer
    type_ = pair_type(buffer.type)
    return buffer.reinterpret(type_.dtype, type_.shape)


def _map(function: Callable[[Any], Any], operand: Any) -> Any:
    if isinstance(operand, list | tuple):
        return [function(part) for part in operand]
    return None if operand is None else function(operand)


def serve_by_pairs(entry: KernelEntry) -> KernelEntry:
    """Return the kernel ``entry`` (one output) for complex numbers."""
    shaped = _SHAPED.get(entry.spec.name)
    asks = tuple(dict.fromkeys((*entry.asks, "out")))

    def prepare(*types: Any, **arguments: Any) -> Callable[..., DeviceBuffer]:
        out: TensorType = arguments["out"]
        arguments["out"] = pair_type(out)
        if shaped in arguments:
            arguments[shaped] = (*arguments[shaped], 2)
        asked = {name: arguments[name] for name in entry.asks}
        inner = prepare_entry(entry, [_map(pair_type, type_) for type_ in types], asked)

        def run(*buffers: Any) -> DeviceBuffer:
            result: DeviceBuffer = inner(*[_map(as_pairs, buffer) for buffer in buffers])
            return result.reinterpret(out.dtype, out.shape)

        return run

    return replace(entry, function=prepare, prepares=True, asks=asks)


def prepare_entry(
    entry: KernelEntry, types: list[Any], asked: dict[str, Any]
) -> Callable[..., Any]:
    """Return a callable that runs ``entry`` on buffers of these ``types``."""
    if entry.prepares:
        call: Callable[..., Any] = entry.function(*types, **asked)
        return call
    return lambda *buffers: entry.function(*buffers, **asked)
