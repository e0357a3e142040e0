"""Cells of recurrent networks. They live in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import arguments, as_tensor, host_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

    # takes the data and its own state and last output, as they were given
    Cell = Callable[[Tensor, Any, Any], Sequence[Tensor]]

__all__ = ["basic_lstm_cell", "multi_rnn_cell"]


def basic_lstm_cell(
    forget_bias: ArrayLike,
    lstm_kernel: ArrayLike,
    lstm_bias: ArrayLike,
    data: ArrayLike,
    c: ArrayLike,
    h: ArrayLike,
) -> list[Tensor]:
    """Return the next state and output ``[c, h]`` of a long short-term memory cell.

    ``i, j, f, o`` are the four quarters of ``concat([data, h]) @ lstm_kernel + lstm_bias``::

        c = sigmoid(i) * tanh(j) + c * sigmoid(forget_bias + f)
        h = tanh(c) * sigmoid(o)

    Args:
        forget_bias: added to the forget gate. 1 keeps the state at the start of training.
        lstm_kernel: [inputs + units, 4 * units].
        lstm_bias: [4 * units].
        data: [batch, inputs].
        c: the state, [batch, units].
        h: the last output, [batch, units].

    Raises:
        ShapeError: the shapes do not fit.

    Source: recurrent neural network regularization (Zaremba et al., 2014).

    Examples:
        >>> kernel, bias = tp.zeros((3 + 2, 4 * 2)), tp.zeros(4 * 2)  # 3 inputs, 2 units
        >>> data, state, output = tp.ones((1, 3)), tp.ones((1, 2)), tp.zeros((1, 2))
        >>> c, h = tp.nn.basic_lstm_cell(100.0, kernel, bias, data, state, output)
        >>> c  # the open forget gate keeps the state
        Tensor([[1., 1.]], dtype=float32, device='cpu')

    """
    arguments = {"lstm_kernel": lstm_kernel, "lstm_bias": lstm_bias, "data": data, "c": c, "h": h}
    tensors = {
        name: as_tensor(value, what=f"basic_lstm_cell: {name}")
        for name, value in arguments.items()
    }
    _check_cell(**{name: tensor.shape for name, tensor in tensors.items()})
    forget: Any = forget_bias  # a Python number takes the dtype of the gates
    if not host_values.is_scalar(forget_bias):
        forget = as_tensor(forget_bias, what="basic_lstm_cell: forget_bias")
    kernel, bias, data, state, output = tensors.values()
    gates = tp.matmul(tp.concat([data, output], axis=1), kernel) + bias
    batch, units = state.shape
    i, j, f, o = (tp.slice(gates, (0, at * units), (batch, units)) for at in range(4))
    new_state = tp.nn.sigmoid(i) * tp.tanh(j) + state * tp.nn.sigmoid(f + forget)
    return [new_state, tp.tanh(new_state) * tp.nn.sigmoid(o)]


def _check_cell(
    *,
    lstm_kernel: tuple[int, ...],
    lstm_bias: tuple[int, ...],
    data: tuple[int, ...],
    c: tuple[int, ...],
    h: tuple[int, ...],
) -> None:
    if len(data) != 2 or len(c) != 2 or h != c or data[0] != c[0]:
        raise ShapeError(
            "basic_lstm_cell: data must be [batch, inputs], c and h [batch, units], got "
            f"{list(data)}, {list(c)} and {list(h)}"
        )
    units = c[1]
    expected = (data[1] + units, 4 * units)
    if lstm_kernel != expected or lstm_bias != expected[1:]:
        raise ShapeError(
            f"basic_lstm_cell: for {data[1]} inputs and {units} units lstm_kernel must be "
            f"{list(expected)} and lstm_bias {list(expected[1:])}, got {list(lstm_kernel)} and "
            f"{list(lstm_bias)}"
        )


def multi_rnn_cell(
    lstm_cells: Sequence[Cell], data: ArrayLike, c: Sequence[ArrayLike], h: Sequence[ArrayLike]
) -> list[list[Tensor]]:
    """Return the next states and outputs ``[cs, hs]`` of a stack of cells.

    Each cell is called as ``cell(data, c, h)`` and returns its new ``[c, h]``. Its h is the data
    of the next cell.

    Args:
        lstm_cells: functions, such as ``basic_lstm_cell`` with its first three arguments bound.
        data: [batch, inputs], for the first cell.
        c: the states of the cells.
        h: the last outputs of the cells.

    Raises:
        ArgumentError: the numbers of states, outputs and cells differ, one of them is not a list,
            or a cell is not a function.

    Source: TensorFlow.js's multiRNNCell.

    Examples:
        >>> kernel, bias = tp.zeros((2 + 2, 4 * 2)), tp.zeros(4 * 2)
        >>> def cell(data, c, h):
        ...     return tp.nn.basic_lstm_cell(100.0, kernel, bias, data, c, h)
        >>> states, outputs = [tp.ones((1, 2)), 3 * tp.ones((1, 2))], [tp.zeros((1, 2))] * 2
        >>> states, outputs = tp.nn.multi_rnn_cell([cell, cell], tp.ones((1, 2)), states, outputs)
        >>> states[1]
        Tensor([[3., 3.]], dtype=float32, device='cpu')

    """
    for name, entries in (("lstm_cells", lstm_cells), ("c", c), ("h", h)):
        if not isinstance(entries, list | tuple):
            raise ArgumentError(
                f"multi_rnn_cell: {name} must be a list, got {arguments.quoted(entries)}"
            )
    for cell in lstm_cells:
        if not callable(cell):
            raise ArgumentError(
                f"multi_rnn_cell: lstm_cells must be functions, "
                f"but one is {arguments.quoted(cell)}"
            )
    if not len(lstm_cells) == len(c) == len(h):
        raise ArgumentError(
            f"multi_rnn_cell: c and h must have one entry for each of {len(lstm_cells)} cells, "
            f"got {len(c)} and {len(h)}"
        )
    flowing = as_tensor(data, what="multi_rnn_cell: data")
    states, outputs = [], []
    for cell, state, output in zip(lstm_cells, c, h, strict=True):
        new_state, flowing = cell(flowing, state, output)
        states.append(new_state)
        outputs.append(flowing)
    return [states, outputs]
