"""The epilogues of fused kernels: add a bias to a product, and apply an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.algorithms import channel_broadcast_shape
from tensorplug_opencl.codegen import ctypes, layouts
from tensorplug_opencl.products.product_texts import Epilogue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import DType, Shape, TensorType
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.products.matrices import Matrix


# Expressions of x, which has the bias; NaN stays NaN.
_EXPRESSIONS: Final = {
    "linear": "{x}",
    "relu": "{x} > 0 || {x} != {x} ? {x} : 0",
    "relu6": "{x} > 6 ? 6 : {x} > 0 || {x} != {x} ? {x} : 0",
    "elu": "{x} > 0 ? {x} : expm1({x})",
    "prelu": "{x} < 0 ? {x} * slope : {x}",
    "leakyrelu": "{x} < 0 ? {x} * alpha : {x}",
    "sigmoid": "logistic({x})",
}


class FusedEpilogue(NamedTuple):
    """An epilogue, and which of (bias, weights) it reads."""

    expression: str
    numbers: tuple[tuple[str, float], ...]
    inputs: tuple[tuple[str, Shape], ...]
    chosen: tuple[int, ...]

    def bind(self, shape: Shape, view: Callable[[layouts.Strides], Matrix]) -> Epilogue:
        """Return the epilogue of a product of ``shape``, which ``view`` reads as matrices."""
        inputs = tuple(
            (name, view(layouts.broadcast_strides(own, shape))) for name, own in self.inputs
        )
        return Epilogue(self.expression, inputs, self.numbers)

    def reorder(self, multiply: Callable[..., None]) -> Callable[..., None]:
        """Return ``multiply`` as a function of both factors, bias, weights and the result."""
        chosen = self.chosen

        def write(a: DeviceBuffer, b: DeviceBuffer, *rest: DeviceBuffer) -> None:
            multiply(a, b, *[rest[at] for at in chosen], rest[-1])

        return write


def choose_epilogue(
    dtype: DType,
    rank: int,
    bias: TensorType | None,
    weights: TensorType | None,
    attributes: Mapping[str, Any],
) -> FusedEpilogue:
    """Return the epilogue that a fused kernel's attributes ask for."""
    activation = attributes["activation"]
    data_format = attributes.get("data_format")
    operands: Sequence[tuple[int, str, TensorType | None]] = (
        (0, "bias", bias),
        (1, "slope", weights if activation == "prelu" else None),
    )
    used = [(at, name, operand.shape) for at, name, operand in operands if operand is not None]
    x = "(x + bias)" if bias is not None else "x"
    if dtype.kind != "float":
        x = f"(({ctypes.stored(dtype)}){x})"  # wrapped, and with its sign
    numbers = (("alpha", attributes["leakyrelu_alpha"]),) if activation == "leakyrelu" else ()
    return FusedEpilogue(
        _EXPRESSIONS[activation].format(x=x),
        numbers,
        tuple((name, channel_broadcast_shape(of, rank, data_format)) for _, name, of in used),
        tuple(at for at, _, _ in used),
    )
