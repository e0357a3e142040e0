"""The bits of elements, read as another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import attributes, expressions
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch
from tensorplug.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike

__all__ = ["bitcast"]


_NUMBERS = dt.NUMERIC | dt.STORAGE


def _infer_bitcast(input: TensorType, *, dtype: DType) -> TensorType:
    if dtype not in _NUMBERS:
        raise DTypeError(f"dtype must be numeric, got {dtype}")
    old, new = input.dtype.bits, dtype.bits
    if new == old:
        return TensorType(dtype, input.shape)
    if new < old:
        return TensorType(dtype, (*input.shape, old // new))
    if not input.rank or input.shape[-1] != new // old:
        raise ShapeError(
            f"the last axis of input must have length {new // old} to become {dtype}, got {input}"
        )
    return TensorType(dtype, input.shape[:-1])


BITCAST = KernelSpec(
    "Bitcast",
    ("input",),
    _infer_bitcast,
    attributes={"dtype": attributes.dtype(stored=True)},
    accepts=_NUMBERS,
    expression=lambda x, *, dtype: expressions.bitcast(x, dtype),
    exact=True,
    elementwise=False,
    leading=(),
)


def bitcast(x: ArrayLike, dtype: DTypeLike, /) -> Tensor:
    """Return the bits of the elements of ``x``, read as another dtype; the values change.

    Bytes are in the order of the device, which is little-endian on all devices in use. Of elements
    of 4 and 2 bits, the first one has the lowest bits of a byte: so packed int4 are uint8.

    The gradient passes between complex numbers and their parts, and to the same dtype; between
    other dtypes it is 0.

    Args:
        x: numbers. If ``dtype`` is wider, the elements along the last axis are the parts of one.
        dtype: a numeric dtype, or one for storage.

    Returns:
        A tensor of ``dtype``: of the same shape if the dtypes have equal widths; with a new
        last axis of the parts of each element if ``dtype`` is narrower; without the last axis
        if it is wider.

    Raises:
        ShapeError: ``dtype`` is n times as wide, but the last axis does not have length n.
        DTypeError: booleans or strings.

    Sources: TensorFlow's Bitcast, whose attribute ``type`` is ``dtype`` here; for less than a
    byte, XLA's BitcastConvert.

    Examples:
        >>> hex(tp.bitcast(1.0, "int32").item())
        '0x3f800000'
        >>> tp.bitcast([1 + 2j], "float32")  # the parts, on a new axis
        Tensor([[1., 2.]], dtype=float32, device='cpu')
        >>> tp.bitcast(tp.asarray([0x2F], dtype="uint8"), "int4")
        Tensor([[-1, 2]], dtype=int4, device='cpu')

    """
    return dispatch(BITCAST, x, dtype=dtype)
