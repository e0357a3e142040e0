"""Elements of one tensor or of another, by a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import (
    as_constant,
    chained,
    dispatch,
)

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, TensorLike


__all__ = ["where"]


def _infer_select(condition: TensorType, t: TensorType, e: TensorType) -> TensorType:
    return TensorType(t.dtype, shapes.broadcast(condition.shape, t.shape, e.shape))


SELECT = KernelSpec(
    "Select",
    ("condition", "t", "e"),
    _infer_select,
    accepts={"condition": dt.BOOL},
    promote=("t", "e"),
    expression="where",
    linear=(("t", "e"),),
)


@chained
def where(condition: ArrayLike, t: TensorLike, e: TensorLike, /) -> Tensor:
    """Return ``t`` where ``condition`` is True, else ``e``, elementwise.

    All three broadcast. ``t`` and ``e`` have any dtype and are promoted; a Python number takes the
    dtype of the tensor beside it. Gradients flow to the elements that are chosen.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: ``condition`` is not boolean, or the dtypes do not promote.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([-1.0, 0.0, 2.0])
        >>> tp.where(x > 0, x, 0.0)
        Tensor([0., 0., 2.], dtype=float32, device='cpu')
        >>> tp.where([[True], [False]], ["a", "b"], "-")
        Tensor([['a', 'b'],
                ['-', '-']], dtype=string, device='cpu')

    """
    return dispatch(SELECT, condition, as_constant(SELECT, 1, t, e), as_constant(SELECT, 2, e, t))
