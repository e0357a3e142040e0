"""Matrix products by NumPy's BLAS, or by native loops where they are faster."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import KernelRefusedError, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import working
from tensorplug_cpu.constants import Bindable
from tensorplug_cpu.execution.blas import matmul, one_thread_each
from tensorplug_cpu.execution.floating_point import binary, kernel, without_warnings
from tensorplug_cpu.execution.parallel import in_parts, is_large, thread_count
from tensorplug_cpu.jit.families import matrices
from tensorplug_cpu.jit.families.batched_products import BatchedProduct
from tensorplug_cpu.jit.families.multiplication import Multiplication
from tensorplug_cpu.jit.forms import formed
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Backend
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

# Multiplications of one product of a stack. OpenBLAS splits products above the first number among
# its threads, which takes longer than the product where other programs use the processors.
_SPLIT: Final = 1 << 18
_LARGE: Final = 1 << 24
_FEW: Final = 16  # rows of one product; or columns, and inner elements
_SHORT: Final = 64  # numbers that may be added one after the other
_LONG: Final = 1 << 22  # multiplications by a matrix that takes long to read from memory


FEW: Final = 8
"""Rows, at most, of a product that takes as long as reading its larger matrix."""

_BY_FORM: Final = formed(specs.BATCH_MAT_MUL)


@kernels.prepare(specs.BATCH_MAT_MUL, dtypes=dt.NUMERIC)
def batch_mat_mul(
    a: TensorType,
    b: TensorType,
    *,
    attributes: dict[str, Any],
    backend: Backend,
    out: TensorType,
) -> Call:
    """Multiply the last two axes; few rows by loops."""
    if are_few(a, b, out, **attributes):
        with suppress(KernelRefusedError):  # no LLVM
            return by_loops(_BY_FORM, (a, b), attributes, backend, out)
    if out.dtype in dt.WIDENED:
        raise KernelRefusedError("BLAS does not know it")
    return _by_blas(a, b, out, **attributes)


def by_loops(
    native: Call,
    types: tuple[TensorType | None, ...],
    attributes: dict[str, Any],
    backend: Backend,
    out: TensorType,
) -> Call:
    """Return a product of few rows; a second matrix that lies transposed is read where it lies.

    How that one lies says nothing about the other inputs.

    Raises:
        KernelRefusedError: loops are not compiled, or they decline it.

    """

    def prepared(types: tuple[TensorType | None, ...], *, turned: bool) -> Call:
        asked = {**attributes, "transpose_b": turned}
        call: Call = native(*types, attributes=asked, backend=backend, out=out)
        return without_warnings(call)

    a, b, *rest = types
    assert b is not None
    turned = attributes["transpose_b"]
    call = prepared(types, turned=turned)
    if b.rank != 2:
        return call
    other = TensorType(b.dtype, b.shape[::-1])

    @cache
    def across() -> Call:
        return prepared((a, other, *rest), turned=not turned)

    def run(a: Array, b: Array, *rest: Any) -> Array:
        lies_across = b.flags.f_contiguous and not b.flags.c_contiguous
        result: Array = across()(a, b.T, *rest) if lies_across else call(a, b, *rest)
        return result

    return run


def are_few(
    a: TensorType, b: TensorType, out: TensorType, *, transpose_a: bool, transpose_b: bool
) -> bool:
    """Return whether loops are faster than BLAS, since there are few rows.

    BLAS has no narrow floats, NumPy's products of integers are slow. For two rows or more, BLAS
    reads the matrix several times; for one, it is no faster, and its threads spin afterwards.
    """
    rows = prod(out.shape[:-1]) if b.rank == 2 else out.shape[-2]
    rows, columns = sorted((rows, out.shape[-1]))
    inner = a.shape[-2 if transpose_a else -1]
    if not 0 < rows <= FEW or min(columns, inner) < _FEW or out.dtype not in dt.REAL:
        return False
    is_blas = out.dtype in {dt.float32, dt.float64}
    return not is_blas or (b.rank == 2 and rows * columns * inner >= _SPLIT)


def _by_blas(
    a: TensorType, b: TensorType, out: TensorType, *, transpose_a: bool, transpose_b: bool
) -> Call:
    """Multiply by BLAS; a narrow float in float32, rounded once.

    Many matrices times one are the rows of all of them times that one: a single product.
    """
    work, narrow = working(out.dtype), out.dtype.numpy
    turned = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    native = matrices.product(a.shape, b.shape, work, **turned)
    native = native or matrices.stacked_product(a.shape, b.shape, work, **turned)
    if native is not None:
        return _by_loops(native, out)
    joined = a.rank > 2 and b.rank == 2 and not transpose_a
    rows = (prod(a.shape[:-1]), a.shape[-1])
    is_stack = a.shape[:-2] == b.shape[:-2] == out.shape[:-2] and prod(out.shape[:-2]) > 1
    work_of_one = prod(out.shape[-2:]) * a.shape[-2 if transpose_a else -1]
    multiply = find_product(work_of_one, out, one_matrix=b.rank == 2)
    if is_stack and _SPLIT < work_of_one < _LARGE:
        multiply = _multiply_stacks

    if work is narrow and not (joined or transpose_a or transpose_b):
        if multiply is matmul and is_large(out):
            allocate = allocator(out.shape, narrow)  # new memory would cost page faults
            return without_warnings(lambda a, b: matmul(a, b, out=allocate()))
        return binary(multiply)

    def run(a: Array, b: Array) -> Any:
        if joined:
            return product(a.reshape(rows), b).reshape(out.shape)
        return product(a, b)

    def product(a: Array, b: Array) -> Any:
        left = a.swapaxes(-1, -2) if transpose_a else a
        right = b.swapaxes(-1, -2) if transpose_b else b
        if work is narrow:
            return multiply(left, right)
        return multiply(left.astype(work), right.astype(work)).astype(narrow)

    return kernel(run, out)


def _by_loops(native: Multiplication | BatchedProduct | Call, out: TensorType) -> Call:
    """Return the call of native loops, which compute narrow floats in wider ones."""
    work, narrow = working(out.dtype), out.dtype.numpy
    call = without_warnings(
        lambda a, b: native(a.astype(work, copy=False), b.astype(work, copy=False)).astype(
            narrow, copy=False
        )
    )
    if not isinstance(native, Multiplication | BatchedProduct):
        return call

    def bound(constants: Sequence[Array | None]) -> Call | None:
        left, right = constants
        if right is None or left is not None:
            return None
        by_matrix = native.bind(right.astype(work, copy=False))
        return without_warnings(
            lambda a, _b: by_matrix(a.astype(work, copy=False)).astype(narrow, copy=False)
        )

    return Bindable(call, bound)


def find_product(work: int, out: TensorType, *, one_matrix: bool) -> Call:
    """Return what multiplies matrices, if a product takes so many multiplications.

    For few rows it takes as long as reading the matrix. Two threads of BLAS seldom read much
    faster, and then spin for milliseconds, at the cost of what comes next.
    """
    rows = prod(out.shape[:-1])
    is_split = one_matrix and rows < _FEW and _SPLIT < work < _LONG and thread_count() > 1
    if is_split:
        return _multiply_in_one_thread
    return matmul if work > _SHORT * prod(out.shape[-2:]) else np.matmul


def _multiply_in_one_thread(left: Array, right: Array) -> Array:
    """Return the product, as ``matmul`` does."""
    result: list[Array] = []
    one_thread_each.run(lambda: result.append(matmul(left, right)))
    return result[0]


def _multiply_stacks(left: Array, right: Array) -> Array:
    """Return the products of two stacks of matrices, which are shared out instead of each one."""
    result = np.empty((*left.shape[:-1], right.shape[-1]), left.dtype)
    axis = next(axis for axis, length in enumerate(result.shape) if length > 1)
    arrays = [np.moveaxis(array, axis, 0) for array in (left, right, result)]

    def work(start: int, stop: int) -> None:
        a, b, to = (array[start:stop] for array in arrays)
        matmul(a, b, out=to)

    one_thread_each.run(lambda: in_parts(work, len(arrays[0])))
    return result
