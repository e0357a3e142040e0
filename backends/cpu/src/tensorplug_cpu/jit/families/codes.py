"""Products of floats by matrices of small integers, which become floats while they are packed.

A product of many rows copies panels of the second matrix anyway. So there is no copy of it in
floats in memory, and the product takes as long as one of floats.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import KernelRefusedError
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.families.multiplication import TERMS, Multiplication
from tensorplug_cpu.jit.loops.calls import is_worth
from tensorplug_cpu.jit.loops.multiplication import Codes, codes_of_word

if TYPE_CHECKING:
    from tensorplug.plugin import DType, TensorType
    from tensorplug_cpu.arrays import Array, Call


_READ_ALONE: Final = frozenset({dt.int8, dt.uint8})  # others are read packed
_LEAST: Final = 16  # terms of a block, fewer of which are read one block after the other
_WORK: Final = 16  # multiplications that are as much as one of a convolution, which BLAS lacks


class _Numbers(NamedTuple):
    """Numbers that belong to blocks of a matrix: scales, zero points."""

    sizes: tuple[int, ...]
    matrix: tuple[int, int]
    inner: int  # the axis of terms, 0 or 1

    @property
    def blocks(self) -> int:
        return self.sizes[self.inner]

    def arranged(self, numbers: Array, blocks: int) -> Array:
        """Return them in float32, [blocks, columns]."""
        numbers = numbers.reshape(self.sizes)
        goal = list(self.matrix)
        goal[self.inner] = blocks
        for axis, length in enumerate(goal):
            if numbers.shape[axis] not in {1, length}:
                numbers = numbers.repeat(length // numbers.shape[axis], axis)
        spread = np.broadcast_to(numbers, goal)
        return np.ascontiguousarray(spread.T if self.inner else spread, np.float32)


def product_by_codes(
    a: TensorType,
    b: TensorType,
    numbers: tuple[TensorType | None, ...],
    out: TensorType,
    *,
    transpose_b: bool,
    b_packed: DType | None,
) -> Call:
    """Return a function of a, b, and ``numbers``: scales, zero points and offsets of b.

    Args:
        a: [..., rows, inner] of floats.
        b: [inner, columns]; or, with ``transpose_b``, [columns, inner], perhaps packed.
        numbers: of blocks of b.
        out: [..., rows, columns].
        transpose_b: as in the spec.
        b_packed: likewise.

    Raises:
        KernelRefusedError: the product is of another kind, too small, or of odd sizes.

    """
    code = b_packed or b.dtype
    there = [each for each in numbers if each is not None]
    floats = [each.dtype for each in (a, out, *there) if each.dtype in dt.FLOATING]
    if a.dtype not in dt.FLOATING or dt.promote(floats).compute is not dt.float32:
        raise KernelRefusedError("only products in float32 are loops")
    packed = b_packed is not None
    if b.rank != 2 or code not in (dt.WHOLE if packed else _READ_ALONE):
        raise KernelRefusedError("only one matrix of integers is read as it lies")
    if packed and not transpose_b:
        raise KernelRefusedError("a byte has numbers of several columns")
    inner, columns, rows = a.shape[-1], out.shape[-1], prod(a.shape[:-1])
    if not is_worth(rows * inner * columns // _WORK):
        raise KernelRefusedError("the product is small, or loops are not compiled")
    matrix = (columns, inner) if transpose_b else (inner, columns)
    of_blocks = [
        None if x is None else _Numbers((1,) * (2 - x.rank) + x.shape, matrix, int(transpose_b))
        for x in numbers
    ]
    counts = {each.blocks for each in of_blocks if each is not None} - {1}
    if len(counts) > 1:
        raise KernelRefusedError("scales and zero points have different blocks")
    block = _block(inner // max(counts, default=1), codes_of_word(code.bits))
    work, narrow = np.dtype(np.float32), out.dtype.numpy
    multiply = Multiplication(
        (rows, inner, columns), out.shape, work, across=transpose_b, block=block
    )
    codes = Codes(code.bits, code.kind == "signed", *(x is not None for x in numbers[1:]))
    ones = np.ones((inner // block, columns), work)

    def run(a: Array, b: Array, *operands: Any) -> Array:
        scale, *rest = (
            None if one is None else one.arranged(operand, inner // block)
            for one, operand in zip(of_blocks, operands, strict=True)
        )
        scale = ones if scale is None else scale
        result = multiply.by_codes(a.astype(work, copy=False), b, codes, (scale, *rest))
        return result.astype(narrow, copy=False)

    return run


def _block(terms: int, together: int) -> int:
    """Return how many terms a step of a loop takes, of so many that share their numbers."""
    for count in range(-(-terms // TERMS), terms // _LEAST + 1):
        if terms % count == 0 and terms // count % together == 0:
            return terms // count
    raise KernelRefusedError("the terms are no whole words")
