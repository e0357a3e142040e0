"""Einstein sums by BLAS; everything except the arithmetic is decided once per plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import contraction_order
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.blas import matmul
from tensorplug_cpu.execution.floating_point import kernel
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.summation import summer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

    Step = Callable[[Array], Array]

kernels = Kernels()


@kernels.prepare(specs.EINSUM, because="faster")
def einsum(xs: list[TensorType], *, equation: str, out: TensorType) -> Call:
    """Join two operands at a time; float16 works in float32 and is rounded once."""
    plan = contraction_order.contraction(equation, [x.shape for x in xs])
    work = working(out.dtype)
    reduced = [_reduction(x, how, work) for x, how in zip(xs, plan.reduced, strict=True)]
    joins = [(join.left, join.right, _product(join)) for join in plan.joins]
    perm, narrow = plan.perm, out.dtype.numpy
    if len(xs) == 2 and reduced == [None, None] and perm is None and work is narrow:
        ((left, right, product),) = joins
        return kernel(lambda xs: product(xs[left], xs[right]), out)

    def run(xs: list[Array]) -> Array:
        made = [x.astype(work, copy=False) for x in xs]
        for at, step in enumerate(reduced):
            if step is not None:
                made[at] = step(made[at])
        for left, right, product in joins:
            made.append(product(made[left], made[right]))
        last = made[-1] if perm is None else made[-1].transpose(perm)
        return last.astype(narrow, copy=False)

    return kernel(run, out)


def _reduction(x: TensorType, how: contraction_order.Reduced, work: np.dtype[Any]) -> Step | None:
    """Return the steps for one operand alone; None if there are none."""
    if how.shape is None and not how.diagonals and not how.summed:
        return None
    shape = x.shape if how.shape is None else how.shape
    left = list(shape)
    for _, second in how.diagonals:
        del left[second]
    add = _adder(tuple(left), how.summed, work) if how.summed else None

    def run(x: Array) -> Array:
        x = x.reshape(shape)
        for first, second in how.diagonals:
            x = np.moveaxis(np.diagonal(x, axis1=first, axis2=second), -1, first)
        return x if add is None else add(x)

    return run


def _adder(shape: tuple[int, ...], axes: tuple[int, ...], work: np.dtype[Any]) -> Step:
    if work.kind in "fc":
        return summer(shape, axes, work, keep_dims=False)
    return lambda x: np.asarray(np.add.reduce(x, axis=axes, dtype=work))


def _arrangement(how: contraction_order.Arranged) -> Step | None:
    perm, shape, swapped = how.perm, how.shape, how.swapped
    if perm is None and shape is None and not swapped:
        return None

    def run(x: Array) -> Array:
        if perm is not None:
            x = x.transpose(perm)
        if shape is not None:
            x = x.reshape(shape)
        return x.swapaxes(-1, -2) if swapped else x

    return run


def _product(join: contraction_order.Join) -> Callable[[Array, Array], Array]:
    multiply: Callable[[Array, Array], Any] = matmul if join.matrices else np.multiply
    on_left, on_right = _arrangement(join.arranged_left), _arrangement(join.arranged_right)
    shape = join.shape
    if on_left is None and on_right is None and shape is None:
        return multiply

    def run(a: Array, b: Array) -> Array:
        a = a if on_left is None else on_left(a)
        b = b if on_right is None else on_right(b)
        product = multiply(a, b)
        return np.asarray(product if shape is None else product.reshape(shape))

    return run
