"""Ragged tensors: rows of different lengths, as values and row splits.

Row splits ``[0, 2, 2, 5]`` mean that row 0 has the values 0 and 1, row 1 none, row 2 the others.
The functions live in ``tensorplug.ragged``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import UNKNOWN, Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, TensorLike

__all__ = ["ragged_gather", "ragged_range", "ragged_tensor_to_tensor"]

PartitionType: TypeAlias = Literal["FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS"]
PARTITIONS: Final = ("FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS")


class GatheredRows(NamedTuple):
    """The result of ``ragged_gather``."""

    output_nested_splits: tuple[Tensor, ...]
    output_dense_values: Tensor


class RaggedRange(NamedTuple):
    """The result of ``ragged_range``."""

    rt_nested_splits: Tensor
    rt_dense_values: Tensor


def _infer_ragged_gather(
    params_nested_splits: list[TensorType],
    params_dense_values: TensorType,
    indices: TensorType,
    *,
    output_ragged_rank: int,
) -> tuple[TensorType, ...]:
    if not params_nested_splits:
        raise ArgumentError("params_nested_splits must not be empty; without splits, use gather")
    for at, split in enumerate(params_nested_splits):
        if split.rank != 1:
            raise ShapeError(f"params_nested_splits[{at}] must have rank 1")
    if not params_dense_values.rank:
        raise ShapeError("params_dense_values must have at least rank 1")
    depth = indices.rank - 1 + len(params_nested_splits)
    if output_ragged_rank != depth:
        raise ArgumentError(
            f"output_ragged_rank must be {depth} (the rank of indices minus 1, plus the number of "
            f"params_nested_splits), got {output_ragged_rank}"
        )
    splits = params_nested_splits[0].dtype
    outer = [1]
    for size in indices.shape[:-1]:
        outer.append(outer[-1] * size)
    sizes = [rows + 1 for rows in outer[1:]]  # of the splits made from the indices
    if indices.rank:
        sizes.append(outer[-1] * indices.shape[-1] + 1)
    sizes += [UNKNOWN] * (depth - len(sizes))
    return (
        *(TensorType(splits, (size,)) for size in sizes),
        TensorType(params_dense_values.dtype, (UNKNOWN, *params_dense_values.shape[1:])),
    )


def _compute_ragged_rank(known: InputTypes) -> int:
    rank: int = known["indices"].rank
    return rank - 1 + len(known["params_nested_splits"])


RAGGED_GATHER = KernelSpec(
    "RaggedGather",
    ("params_nested_splits[]", "params_dense_values", "indices"),
    _infer_ragged_gather,
    attributes={
        "output_ragged_rank": attributes.optional(
            attributes.integer(at_least=0), _compute_ragged_rank
        )
    },
    outputs=("outs[]",),
    accepts={"params_nested_splits": dt.INTEGER, "indices": dt.INTEGER},
    promote=("params_nested_splits",),
    typed_by="params_dense_values",
)


def _infer_ragged_range(
    starts: TensorType, limits: TensorType, deltas: TensorType
) -> tuple[TensorType, TensorType]:
    shapes = {ends.shape for ends in (starts, limits, deltas)} - {()}
    if len(shapes) > 1 or any(len(shape) > 1 for shape in shapes):
        raise ShapeError(
            "starts, limits and deltas must have rank 0, or rank 1 and the same length"
        )
    rows = next(iter(shapes), (1,))[0]
    return TensorType(dt.int32, (rows + 1,)), TensorType(starts.dtype, (UNKNOWN,))


_ENDS = ("starts", "limits", "deltas")
RAGGED_RANGE = KernelSpec(
    "RaggedRange",
    _ENDS,
    _infer_ragged_range,
    outputs=("rt_nested_splits", "rt_dense_values"),
    accepts=dt.REAL,
    promote=_ENDS,
)


def _read_kinds(value: Any, _types: InputTypes) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(kind, str) for kind in value):
        raise ArgumentError(f"must be a list of strings, got {quoted(value)}")
    kinds = tuple(kind.upper() for kind in value)
    for kind in kinds:
        if kind not in PARTITIONS:
            raise ArgumentError(f"must contain only {', '.join(PARTITIONS)}, got {quoted(kind)}")
    if not kinds or kinds[0] == "VALUE_ROWIDS" or "FIRST_DIM_SIZE" in kinds[1:]:
        raise ArgumentError(
            "must begin with FIRST_DIM_SIZE or ROW_SPLITS and continue with ROW_SPLITS or "
            f"VALUE_ROWIDS, got {kinds}"
        )
    return kinds


def _infer_ragged_tensor_to_tensor(
    shape: TensorType,
    values: TensorType,
    default_value: TensorType,
    row_partition_tensors: list[TensorType],
    *,
    row_partition_types: tuple[str, ...],
) -> TensorType:
    if len(row_partition_tensors) != len(row_partition_types):
        raise ArgumentError(
            f"there must be as many row_partition_tensors as row_partition_types, got "
            f"{len(row_partition_tensors)} and {len(row_partition_types)}"
        )
    for kind, tensor in zip(row_partition_types, row_partition_tensors, strict=True):
        _check_partition(kind, tensor)
    if not values.rank:
        raise ShapeError("values must have at least rank 1")
    ragged = len(row_partition_types) - (row_partition_types[0] == "FIRST_DIM_SIZE")
    rank = ragged + values.rank
    if shape.shape not in ((), (rank,)):
        raise ShapeError(f"shape must have {rank} sizes, the rank of the result")
    inner = values.shape[1:]
    _check_default(default_value, inner)
    return TensorType(values.dtype, (*(UNKNOWN,) * (ragged + 1), *inner))


def _check_partition(kind: str, partition: TensorType) -> None:
    if kind == "FIRST_DIM_SIZE":
        if partition.size != 1:
            raise ShapeError("the partition FIRST_DIM_SIZE must be one number")
    elif partition.rank != 1 or (kind == "ROW_SPLITS" and not partition.size):
        raise ShapeError(f"a partition {kind} must have rank 1, and splits at least one element")


def _check_default(default: TensorType, inner: tuple[int, ...]) -> None:
    lead = len(inner) - default.rank
    fits = lead >= 0 and all(
        own in (1, size) for own, size in zip(default.shape, inner[lead:], strict=False)
    )
    if not fits:
        raise ShapeError(f"default_value must broadcast to the shape of a value, {list(inner)}")


RAGGED_TENSOR_TO_TENSOR = KernelSpec(
    "RaggedTensorToTensor",
    ("shape", "values", "default_value", "row_partition_tensors[]"),
    _infer_ragged_tensor_to_tensor,
    attributes={
        "row_partition_types": Attribute(
            _read_kinds, form=f"tuple of one or more of {', '.join(map(repr, PARTITIONS))}"
        )
    },
    accepts={"shape": dt.INTEGER, "row_partition_tensors": dt.INTEGER},
    promote=("values", "default_value"),
)


def ragged_gather(
    params_nested_splits: Sequence[ArrayLike],
    params_dense_values: TensorLike,
    indices: ArrayLike,
    output_ragged_rank: int | None = None,
) -> GatheredRows:
    """Return rows of a ragged tensor, as a ragged tensor.

    Args:
        params_nested_splits: a list of row splits, those of the outermost dimension first; the
            last ones split ``params_dense_values``.
        params_dense_values: ``[values, *rest]``, of any dtype, strings too.
        indices: integers of any shape, the rows of the outermost dimension to gather.
        output_ragged_rank: the number of row splits of the result. It must be, and is by
            default, the rank of ``indices`` minus 1, plus the number of splits.

    Returns:
        ``output_nested_splits``, a tuple of row splits in the dtype of
        ``params_nested_splits``, and ``output_dense_values`` ``[gathered values, *rest]``. It is
        differentiable in ``params_dense_values``.

    Raises:
        ShapeError: a wrong rank.
        ArgumentError: the splits descend or exceed the values, or ``output_ragged_rank`` is
            wrong.
        OutOfRangeError: an index is not in ``[0, rows)``.

    (TensorFlow's RaggedGather.)

    Examples:
        >>> words = ["a", "b", "c", "d", "e"]  # the rows a b, c, d e
        >>> rows = tp.ragged.ragged_gather([[0, 2, 3, 5]], words, [2, 0])
        >>> rows.output_nested_splits
        (Tensor([0, 2, 4], dtype=int32, device='cpu'),)
        >>> rows.output_dense_values
        Tensor(['d', 'e', 'a', 'b'], dtype=string, device='cpu')

    """
    *splits, values = dispatch_multiple(
        RAGGED_GATHER,
        params_nested_splits,
        params_dense_values,
        indices,
        output_ragged_rank=output_ragged_rank,
    )
    return GatheredRows(tuple(splits), values)


def ragged_range(starts: ArrayLike, limits: ArrayLike, deltas: ArrayLike = 1) -> RaggedRange:
    """Return a ragged tensor whose rows are ``start, start + delta, ...`` below a limit.

    Args:
        starts: numbers of rank 1, or one number for all rows.
        limits: likewise; exclusive.
        deltas: likewise; negative ones descend. All three are promoted to a common dtype.

    Returns:
        ``rt_nested_splits`` (int32, one more than there are rows) and ``rt_dense_values``, the
        numbers ``start + n * delta``, rounded once from float64. They are differentiable in
        ``starts`` and ``deltas``.

    Raises:
        ShapeError: a wrong rank, or different lengths.
        ArgumentError: a delta is 0, an argument is not finite, or there are more values than
            int32 can count.

    (TensorFlow's RaggedRange.)

    Examples:
        >>> rows = tp.ragged.ragged_range([0, 5, 8], [3, 5, 12], [1, 1, 2])
        >>> rows.rt_nested_splits  # the second row is empty
        Tensor([0, 3, 3, 5], dtype=int32, device='cpu')
        >>> rows.rt_dense_values
        Tensor([ 0,  1,  2,  8, 10], dtype=int32, device='cpu')

    """
    return RaggedRange(*dispatch_multiple(RAGGED_RANGE, starts, limits, deltas))


def ragged_tensor_to_tensor(
    shape: ArrayLike,
    values: TensorLike,
    default_value: TensorLike,
    row_partition_tensors: Sequence[ArrayLike],
    row_partition_types: Sequence[PartitionType],
) -> Tensor:
    """Return a ragged tensor as a dense one: rows are cut, or padded with ``default_value``.

    Args:
        shape: integers, the sizes of the result. -1 stands for the size of the longest row, and
            a scalar -1 for all sizes.
        values: ``[values, *rest]``, of any dtype, strings too.
        default_value: broadcasts to ``rest``; it and ``values`` are promoted to a common dtype.
        row_partition_tensors: a list of integer tensors that define the rows, those of the
            outermost dimension first.
        row_partition_types: the type of each: ``"ROW_SPLITS"``, or ``"VALUE_ROWIDS"``, the
            ascending row numbers of the values. The first may be ``"FIRST_DIM_SIZE"``, the
            number of rows; VALUE_ROWIDS needs it.

    Returns:
        A tensor with the rank of ``values`` plus the number of partitions, without
        FIRST_DIM_SIZE. It is differentiable in ``values`` and ``default_value``.

    Raises:
        ShapeError: the shapes do not fit each other.
        ArgumentError: the partitions descend, or do not match the number of values.

    (TensorFlow's RaggedTensorToTensor.)

    Examples:
        >>> tp.ragged.ragged_tensor_to_tensor(-1, [1, 2, 3, 4], 0, [[0, 2, 2, 4]], ["ROW_SPLITS"])
        Tensor([[1, 2],
                [0, 0],
                [3, 4]], dtype=int32, device='cpu')
        >>> tp.ragged.ragged_tensor_to_tensor(
        ...     [2, 3], [1, 2, 3, 4], 0, [2, [0, 0, 0, 1]], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
        ... )
        Tensor([[1, 2, 3],
                [4, 0, 0]], dtype=int32, device='cpu')

    """
    return dispatch(
        RAGGED_TENSOR_TO_TENSOR,
        shape,
        values,
        default_value,
        row_partition_tensors,
        row_partition_types=row_partition_types,
    )
