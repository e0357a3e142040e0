"""Long short-term memory over sequences. It lives in ``tensorplug.nn``.

The kernel computes all steps. In each, with the state (h, c) before it,

    i, f, g, o = quarters of gates + h R
    c = sigmoid(f) c + sigmoid(i) tanh(g)
    h = sigmoid(o) tanh(c)

unless the mask leaves the step out: then the state stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.ops.elementwise.arithmetic import add
from tensorplug.ops.nn import recurrent_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["lstm"]

_OPERANDS = ("gates", "recurrent", "h", "c")
_STATES = ("hidden", "cell")
_OF_GRAD = ("dhidden", "dcell", *_OPERANDS, *_STATES)


def _infer_lstm(
    gates: TensorType,
    recurrent: TensorType,
    h: TensorType,
    c: TensorType,
    mask: TensorType | None,
) -> tuple[TensorType, TensorType]:
    operands = (gates, recurrent, h, c)
    sizes = recurrent_layers.check_operands(operands, _OPERANDS, 4, mask)
    state = TensorType(gates.dtype, sizes)
    return state, state


def _infer_lstm_grad(
    dhidden: TensorType,
    dcell: TensorType,
    gates: TensorType,
    recurrent: TensorType,
    h: TensorType,
    c: TensorType,
    hidden: TensorType,
    cell: TensorType,
    mask: TensorType | None,
) -> tuple[TensorType, TensorType, TensorType]:
    operands = (dhidden, dcell, gates, recurrent, h, c, hidden, cell)
    recurrent_layers.check_operands(operands, _OF_GRAD, 4, mask)
    return gates, h, c


LSTM = KernelSpec(
    "LSTM",
    (*_OPERANDS, "mask?"),
    _infer_lstm,
    outputs=_STATES,
    accepts={**dict.fromkeys(_OPERANDS, dt.FLOATING), "mask": dt.BOOL},
    promote=_OPERANDS,
    fold=("gates", "h", "c", "mask"),
)
LSTM_GRAD = KernelSpec(  # with respect to gates, h and c; the states are LSTM's outputs
    "LSTMGrad",
    (*_OF_GRAD, "mask?"),
    _infer_lstm_grad,
    outputs=("dgates", "dh", "dc"),
    accepts={**dict.fromkeys(_OF_GRAD, dt.FLOATING), "mask": dt.BOOL},
    promote=_OF_GRAD,
    fold=("dhidden", "dcell", "gates", "h", "c", "hidden", "cell", "mask"),
)


def lstm(
    x: ArrayLike,
    kernel: ArrayLike,
    recurrent_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    initial_state: Sequence[ArrayLike] | None = None,
    lengths: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return the outputs of a long short-term memory layer for sequences, and its last state.

    In each step, with ``i, f, g, o`` the four quarters of ``x_t @ kernel + h @ recurrent_kernel +
    bias`` (input gate, forget gate, cell, output gate, in this order, as in PyTorch and Keras)::

        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)

    and h is the output.

    Args:
        x: [batch, time, features].
        kernel: [features, 4 * units].
        recurrent_kernel: [units, 4 * units].
        bias: [4 * units], or None for 0. Pass the sum of PyTorch's two biases.
        initial_state: the state (h, c) before the first step, each [batch, units]; None for 0.
        lengths: integers [batch], how many steps at the start of each sequence count:
            step t counts if ``t < length``. The others are padding: their output is 0, and they
            leave the state as it is.
        mask: bool [batch, time], instead of lengths: False for padding, which may be anywhere.
        direction: "forward"; "reverse", from the last step to the first; or "bidirectional",
            both. Each output is at the position of its step.

    With "bidirectional", the weights and states have one more axis in front, of length 2 (forward,
    reverse), and the outputs of both directions lie side by side. To stack layers, pass the
    outputs as the x of the next one.

    Returns:
        The outputs, [batch, time, units], or [batch, time, 2 * units] if bidirectional; and the
        last state (h, c), each [batch, units], or [2, batch, units].

    All floating arguments are differentiable. They are promoted to a common dtype.

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: an argument is not floating, lengths are not integers, or the mask is not
            boolean.
        ArgumentError: the direction is unknown, or lengths and mask are both given.

    Source: "Learning to forget: continual prediction with LSTM" (Gers et al., 2000).

    Examples:
        >>> x, units = tp.ones((2, 7, 3)), 5
        >>> kernel, recurrent = tp.ones((3, 4 * units)), tp.ones((units, 4 * units))
        >>> y, (h, c) = tp.nn.lstm(x, kernel, recurrent, lengths=[7, 4])
        >>> y.shape, h.shape, c.shape
        ((2, 7, 5), (2, 5), (2, 5))
        >>> bool(tp.all(y[1, 4:] == 0)), bool(tp.all(y[1, 3] == h[1]))
        (True, True)

    """
    call = recurrent_layers.read(
        "lstm",
        x,
        {"kernel": kernel, "recurrent_kernel": recurrent_kernel, "bias": bias},
        4,
        recurrent_layers.split_state("lstm", initial_state, ("h", "c")),
        lengths=lengths,
        mask=mask,
        direction=direction,
    )
    outputs, (h, c) = recurrent_layers.run(call, _recur)
    return outputs, (h, c)


def _recur(
    gates: Tensor, weights: Sequence[Tensor], states: Sequence[Tensor], mask: Tensor | None
) -> list[Tensor]:
    recurrent, bias = weights
    return dispatch_multiple(LSTM, add(gates, bias), recurrent, *states, mask)
