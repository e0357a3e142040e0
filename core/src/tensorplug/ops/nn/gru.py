"""Gated recurrent units over sequences. They live in ``tensorplug.nn``.

The kernel computes all steps. In each, with the state h before it and the thirds

    xr, xz, xn = gates            ar, az, an = h R + bias

r is sigmoid(xr + ar), z is sigmoid(xz + az), n is tanh(xn + r an), and h becomes (1 - z) n + z h,
unless the mask leaves the step out: then h stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise.arithmetic import add
from tensorplug.ops.nn import recurrent_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["gru"]

_OPERANDS = ("gates", "recurrent", "bias", "h")
_OF_GRAD = ("dhidden", *_OPERANDS, "hidden")


def _infer_gru(
    gates: TensorType,
    recurrent: TensorType,
    bias: TensorType,
    h: TensorType,
    mask: TensorType | None,
) -> TensorType:
    operands = (gates, recurrent, bias, h)
    sizes = recurrent_layers.check_operands(operands, _OPERANDS, 3, mask)
    return TensorType(gates.dtype, sizes)


def _infer_gru_grad(
    dhidden: TensorType,
    gates: TensorType,
    recurrent: TensorType,
    bias: TensorType,
    h: TensorType,
    hidden: TensorType,
    mask: TensorType | None,
) -> tuple[TensorType, TensorType, TensorType]:
    operands = (dhidden, gates, recurrent, bias, h, hidden)
    recurrent_layers.check_operands(operands, _OF_GRAD, 3, mask)
    return gates, gates, h


GRU = KernelSpec(
    "GRU",
    (*_OPERANDS, "mask?"),
    _infer_gru,
    outputs=("hidden",),
    accepts={**dict.fromkeys(_OPERANDS, dt.FLOATING), "mask": dt.BOOL},
    promote=_OPERANDS,
    fold=("gates", "h", "mask"),
)
GRU_GRAD = KernelSpec(  # with respect to gates, to h R + bias, and to h; hidden is GRU's output
    "GRUGrad",
    (*_OF_GRAD, "mask?"),
    _infer_gru_grad,
    outputs=("dgates", "dproducts", "dh"),
    accepts={**dict.fromkeys(_OF_GRAD, dt.FLOATING), "mask": dt.BOOL},
    promote=_OF_GRAD,
    fold=("dhidden", "gates", "h", "hidden", "mask"),
)


def gru(
    x: ArrayLike,
    kernel: ArrayLike,
    recurrent_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    recurrent_bias: ArrayLike | None = None,
    *,
    initial_state: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
) -> tuple[Tensor, Tensor]:
    """Return the outputs of a layer of gated recurrent units for sequences, and its last state.

    In each step, with the thirds ``xr, xz, xn`` of ``x_t @ kernel + bias`` and ``ar, az, an`` of
    ``h @ recurrent_kernel + recurrent_bias`` (reset gate, update gate, new state, in this order,
    as in PyTorch)::

        r, z = sigmoid(xr + ar), sigmoid(xz + az)
        n = tanh(xn + r * an)
        h = (1 - z) * n + z * h

    and h is the output. The reset gate acts after the product (Keras's ``reset_after=True``).

    Args:
        x: [batch, time, features].
        kernel: [features, 3 * units].
        recurrent_kernel: [units, 3 * units].
        bias: [3 * units], or None for 0.
        recurrent_bias: likewise.
        initial_state: the state before the first step, [batch, units]; None for 0.
        lengths: as for ``lstm``.
        mask: as for ``lstm``.
        direction: as for ``lstm``, and so are the shapes for "bidirectional".

    Returns:
        The outputs, [batch, time, units], or [batch, time, 2 * units] if bidirectional; and the
        last state, [batch, units], or [2, batch, units].

    All floating arguments are differentiable. They are promoted to a common dtype.

    Raises: as ``lstm``.

    Source: "Learning phrase representations using RNN encoder-decoder" (Cho et al., 2014), v1.

    Examples:
        >>> x, units = tp.ones((2, 7, 3)), 5
        >>> kernel, recurrent = tp.ones((3, 3 * units)), tp.ones((units, 3 * units))
        >>> y, h = tp.nn.gru(x, kernel, recurrent, direction="reverse")
        >>> y.shape, h.shape
        ((2, 7, 5), (2, 5))
        >>> bool(tp.all(y[:, 0] == h))  # in reverse the first place is the last step
        True

    """
    call = recurrent_layers.read(
        "gru",
        x,
        {
            "kernel": kernel,
            "recurrent_kernel": recurrent_kernel,
            "bias": bias,
            "recurrent_bias": recurrent_bias,
        },
        3,
        {"initial_state": initial_state},
        lengths=lengths,
        mask=mask,
        direction=direction,
    )
    outputs, (h,) = recurrent_layers.run(call, _recur)
    return outputs, h


def _recur(
    gates: Tensor, weights: Sequence[Tensor], states: Sequence[Tensor], mask: Tensor | None
) -> list[Tensor]:
    recurrent, bias, recurrent_bias = weights
    return [dispatch(GRU, add(gates, bias), recurrent, recurrent_bias, *states, mask)]
