"""Blocks cut out of a tensor, and constants around it: specs and public functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import chained, dispatch
from tensorplug.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ShapeLike, TensorLike


__all__ = ["slice"]


def _infer_slice(x: TensorType, *, begin: tuple[int, ...], size: tuple[int, ...]) -> TensorType:
    for axis, (first, count, length) in enumerate(zip(begin, size, x.shape, strict=True)):
        if first < 0 or count < 0 or first + count > length:
            raise ShapeError(
                f"the slice of {count} from {first} exceeds axis {axis} of length {length}"
            )
    return TensorType(x.dtype, size)


def _read_begin(value: Any, types: InputTypes) -> tuple[int, ...]:
    begin = shapes.as_ints(value, "begin")
    rank: int = types["x"].rank
    if len(begin) > rank:
        raise ShapeError(f"{list(begin)} has more entries than the rank {rank}")
    return begin + (0,) * (rank - len(begin))


def _read_size(value: Any, known: InputTypes) -> tuple[int, ...]:
    shape: Shape = known["x"].shape
    begin: tuple[int, ...] = known["begin"]
    sizes = () if value is None else shapes.as_ints(value, "size")
    if len(sizes) > len(shape):
        raise ShapeError(f"{list(sizes)} has more entries than the rank {len(shape)}")
    counts = sizes + (-1,) * (len(shape) - len(sizes))
    return tuple(
        length - first if count == -1 else count
        for count, first, length in zip(counts, begin, shape, strict=True)
    )


SLICE = KernelSpec(
    "Slice",
    ("x",),
    _infer_slice,
    attributes={
        "begin": Attribute(_read_begin, form="tuple of one int per axis of x"),
        "size": Attribute(
            _read_size, None, "tuple of one int >= 0 per axis of x; None takes all that is left"
        ),
    },
    linear=("x",),
)


def _infer_pad_v2(
    x: TensorType, *, paddings: tuple[tuple[int, int], ...], constant_value: dt.Scalar | str
) -> TensorType:
    _check_constant(constant_value, x.dtype)
    sizes = (low + n + high for (low, high), n in zip(paddings, x.shape, strict=True))
    return TensorType(x.dtype, tuple(sizes))


def _check_constant(value: dt.Scalar | str, dtype: DType) -> None:
    if isinstance(value, str) != (dtype is dt.string):
        raise DTypeError(f"{value!r} cannot become {dtype}")
    if not isinstance(value, str):
        dt.check_number(value, dtype)


def _read_constant(value: Any, known: InputTypes) -> dt.Scalar | str:
    """Return a number or a string; None becomes 0, or the empty string."""
    if value is None:
        return "" if known["x"].dtype is dt.string else 0
    if isinstance(value, str):
        return str(value)
    number: dt.Scalar = attributes.number().canonical(value, known)  # type: ignore[assignment]  # a number
    return number


def read_paddings(value: Any, known: InputTypes) -> tuple[tuple[int, int], ...]:
    """Return an attribute of one pair of ints, before and after, per axis of x."""
    return shapes.pairs(value, known["x"].rank)


PAD_V2 = KernelSpec(
    "PadV2",
    ("x",),
    _infer_pad_v2,
    attributes={
        "paddings": Attribute(
            read_paddings, form="tuple of one pair (before, after) of ints >= 0 per axis of x"
        ),
        "constant_value": Attribute(
            _read_constant,
            None,
            "bool, int, float, complex or str; None becomes 0, or '' for strings",
        ),
    },
    linear=("x",),
    linear_with={"constant_value": 0},
)


@chained
def slice(x: TensorLike, begin: ShapeLike, size: ShapeLike | None = None) -> Tensor:
    """Return the block of ``x`` that starts at ``begin`` and has ``size``.

    A size of -1 takes the rest of the axis, as do missing entries of ``size``. Missing entries of
    ``begin`` are 0. (TensorFlow's Slice; ``x[...]`` is a shorter form.)

    Raises:
        ShapeError: the block exceeds ``x``, or there are more entries than axes.

    Examples:
        >>> x = tp.asarray([[1, 2, 3], [4, 5, 6]])
        >>> tp.slice(x, (0, 1), (2, 2))
        Tensor([[2, 3],
                [5, 6]], dtype=int32, device='cpu')
        >>> tp.slice(x, 1)
        Tensor([[4, 5, 6]], dtype=int32, device='cpu')

    """
    return dispatch(SLICE, x, begin=begin, size=size)


def pad(
    x: Any, paddings: Sequence[Sequence[int]], constant_value: dt.Scalar | str | None = None
) -> Tensor:
    """Return ``x`` with a constant around it: the public ``pad`` in mode "constant"."""
    return dispatch(PAD_V2, x, paddings=paddings, constant_value=constant_value)
