"""Convolutions with a bias and an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import Expression, KernelSpec, TensorType, specs
from tensorplug_loops.forms.nn import convolution, depthwise, epilogues
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_loops.forms.loops import Loops

forms = FormTable()


def _register(spec: KernelSpec, convolve: Callable[..., Form]) -> None:
    @forms.form(spec)
    def fused(
        x: Operand,
        filter: Operand,
        bias: Operand | None,
        prelu_activation_weights: Operand | None,
        *,
        attributes: dict[str, Any],
        data_format: str,
        leakyrelu_alpha: float,
        activation: str,
        out: TensorType,
    ) -> Form:
        def prepare(loops: Loops) -> Callable[[Expression], Expression]:
            return epilogues.prepare(
                loops,
                out,
                bias,
                prelu_activation_weights,
                activation=activation,
                leakyrelu_alpha=leakyrelu_alpha,
                data_format=data_format,
            )

        return convolve(
            x, filter, attributes=attributes, data_format=data_format, out=out, prepare=prepare
        )


_register(specs.FUSED_CONV2D, convolution.convolve)
_register(specs.FUSED_DEPTHWISE_CONV2D, depthwise.convolve)
