"""Checking gradients against central differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.autodiff import vjp
from tensorplug.dispatch import as_tensor
from tensorplug.errors import ArgumentError
from tensorplug.ops.elementwise import add, astype, multiply
from tensorplug.ops.reduction import sum as sum_
from tensorplug.tensor import Tensor
from tensorplug.tree import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["check_grads"]

Mode = Literal["vjp", "jvp"]
Floats = np.ndarray[Any, np.dtype[np.float64]]

_DIRECTIONS = 2  # random directions tried for each leaf


def check_grads(
    f: Callable[..., Tensor],
    args: Sequence[Any],
    *,
    order: Literal[1, 2] = 1,
    modes: Sequence[Mode] = ("vjp", "jvp"),
    rtol: float = 1e-6,
    atol: float = 1e-6,
    eps: float = 1e-5,
    seed: int = 0,
) -> None:
    """Check the gradient of ``f`` at ``args`` against directional central differences.

    For a random unit direction u of one floating leaf x at a time, the numeric derivative is
    ``(f(x + eps u) - f(x - eps u)) / (2 eps)``, in float64. It is compared

    - in mode ``"vjp"`` as ``<dy, numeric>`` with ``<vjp(dy), u>`` for a random dy;
    - in mode ``"jvp"`` elementwise with ``J u``, which is found by pulling u back through the
      pull itself, so that rules must be differentiable in dy.

    ``order=2`` checks order 1 and then the gradients of ``<v, vjp(dy)>`` with random v.

    Args:
        f: takes tensors, or trees of them, and returns one real floating tensor.
        args: what to call it with. Floating leaves are converted to float64 and
            differentiated; all others are passed on as they are. Choose points away from
            kinks by much more than ``eps``.
        order: 1 or 2.
        modes: of ``"vjp"`` and ``"jvp"``.
        rtol: relative to the larger of the two magnitudes.
        atol: absolute.
        eps: step of the differences.
        seed: of the random directions.

    A leaf that does not influence the result has gradient zero here, not an error.

    Raises:
        AssertionError: naming the argument, the order, the numeric and the analytic value.
        ArgumentError: an order or mode that does not exist, or no floating argument.

    """
    if order not in (1, 2):
        raise ArgumentError(f"check_grads: order must be 1 or 2, got {order!r}")
    if not modes or any(mode not in ("vjp", "jvp") for mode in modes):
        raise ArgumentError(f"check_grads: modes must be of 'vjp' and 'jvp', got {modes!r}")
    point = _Point.of(f, args)
    if not point.leaves:
        raise ArgumentError("check_grads: no argument is floating; there is nothing to check")
    check = _Check(tuple(modes), rtol, atol, eps, np.random.default_rng(seed))
    check.at(point, "order 1")
    if order == 2:
        for index, name in enumerate(point.names):
            check.at(point.gradient_of(index, check.random), f"order 2, of the gradient of {name}")


@dataclass(frozen=True)
class _Point:
    """A function of flat float64 leaves only, and where to differentiate it."""

    call: Callable[..., Tensor]
    leaves: list[Floats]
    names: list[str]

    @classmethod
    def of(cls, f: Callable[..., Tensor], args: Sequence[Any]) -> Self:
        """Take the floating leaves of ``args``; the others become part of the function."""
        values, rebuild = flatten(tuple(args))
        tensors = [as_tensor(value) for value in values]
        places = [at for at, each in enumerate(tensors) if each.dtype in dt.FLOATING]
        names = _names(args)

        def flat(*leaves: Tensor) -> Tensor:
            full: list[Any] = list(values)
            for at, leaf in zip(places, leaves, strict=True):
                full[at] = leaf
            return f(*rebuild(full))

        leaves = [np.array(tensors[at].numpy(), np.float64) for at in places]
        return cls(flat, leaves, [names[at] for at in places])

    def gradient_of(self, index: int, random: np.random.Generator) -> _Point:
        """Return ``<v, vjp(dy)>`` of leaf ``index`` as a function of the leaves and dy."""
        first = self.call
        dy = _unit(random, _value(first(*_tensors(self.leaves))).shape)
        v = _unit(random, self.leaves[index].shape)

        def projected(*leaves_and_dy: Tensor) -> Tensor:
            *leaves, cotangent = leaves_and_dy
            y, pull = vjp(first, *leaves, unconnected="zeros")
            gradient = pull(astype(cotangent, y.dtype))[index]
            return sum_(multiply(gradient, as_tensor(v)))

        return _Point(projected, [*self.leaves, dy], [*self.names, "the incoming dy"])


@dataclass(frozen=True)
class _Check:
    """The settings of one check."""

    modes: tuple[Mode, ...]
    rtol: float
    atol: float
    eps: float
    random: np.random.Generator

    def at(self, point: _Point, label: str) -> None:
        """Compare all derivatives of ``point`` in every mode."""
        y, pull = vjp(point.call, *_tensors(point.leaves), unconnected="zeros")
        if y.dtype not in dt.FLOATING:
            raise ArgumentError(f"check_grads: f must return a floating tensor, got {y.type}")
        for index, name in enumerate(point.names):
            for _ in range(_DIRECTIONS):
                direction = _unit(self.random, point.leaves[index].shape)
                numeric = self._difference(point, index, direction)
                where = f"{label}, with respect to {name}"
                if "vjp" in self.modes:
                    dy = _unit(self.random, y.shape)
                    gradient = pull(as_tensor(dy, y.dtype))[index]
                    self._same_type(gradient, point.leaves[index], where)
                    analytic = np.sum(_value(gradient) * direction)
                    self._compare(np.sum(numeric * dy), analytic, f"{where}, mode vjp")
                if "jvp" in self.modes:
                    analytic = _jvp(point, index, direction)
                    self._compare(numeric, analytic, f"{where}, mode jvp")

    def _difference(self, point: _Point, index: int, direction: Floats) -> Any:
        def moved(step: float) -> Any:
            leaves = list(point.leaves)
            leaves[index] = leaves[index] + step * direction
            return _value(point.call(*_tensors(leaves)))

        with np.errstate(invalid="ignore"):  # inf - inf is a NaN, and that fails the comparison
            return (moved(self.eps) - moved(-self.eps)) / (2 * self.eps)

    def _same_type(self, gradient: Tensor, leaf: Floats, where: str) -> None:
        if gradient.dtype is not dt.float64 or gradient.shape != leaf.shape:
            raise AssertionError(
                f"check_grads: {where}: the gradient is {gradient.type}, but the argument is "
                f"float64[{','.join(map(str, leaf.shape))}]"
            )

    def _compare(self, numeric: Any, analytic: Any, where: str) -> None:
        numeric, analytic = np.asarray(numeric), np.asarray(analytic)
        allowed = self.atol + self.rtol * np.maximum(np.abs(numeric), np.abs(analytic))
        # Written so that a NaN on either side, or on both, is a difference.
        wrong = ~(np.abs(numeric - analytic) <= allowed)
        if not wrong.any():
            return
        at = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
        place = f" at element {list(at)}" if numeric.ndim else ""
        numbers = np.atleast_1d(numeric)[at], np.atleast_1d(analytic)[at]
        raise AssertionError(
            f"check_grads: {where}{place}: numeric {numbers[0]:.10g}, analytic {numbers[1]:.10g}, "
            f"which differ by {abs(numbers[0] - numbers[1]):.3g} (rtol={self.rtol:g}, "
            f"atol={self.atol:g}, eps={self.eps:g})"
        )


def _jvp(point: _Point, index: int, direction: Floats) -> Any:
    """Return ``J u``: the pull is linear in dy, and its own pull is J."""
    tensors = _tensors(point.leaves)

    def pulled(dy: Tensor) -> Tensor:
        _, pull = vjp(point.call, *tensors, unconnected="zeros")
        # A zero that hangs on dy keeps a connection where the true gradient is zero.
        return add(pull(dy)[index], multiply(sum_(dy), 0.0))

    y = point.call(*tensors)
    _, back = vjp(pulled, as_tensor(np.zeros(y.shape), y.dtype))
    return _value(back(as_tensor(direction))[0])


def _unit(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return a random direction of length 1; of length 0 where there is no element."""
    draw = np.asarray(random.standard_normal(shape))
    return draw / max(float(np.sqrt(np.sum(draw * draw))), np.finfo(np.float64).tiny)


def _tensors(leaves: Sequence[Floats]) -> list[Tensor]:
    return [as_tensor(leaf) for leaf in leaves]


def _value(tensor: Tensor) -> Floats:
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"check_grads: f must return a tensor, got {type(tensor).__name__}")
    return np.array(tensor.numpy(), np.float64)


def _names(args: Sequence[Any]) -> list[str]:
    """Return what messages call each leaf of ``args``."""
    names = []
    for position, arg in enumerate(args):
        count = len(flatten(arg)[0])
        names += [
            f"argument {position}" + (f", leaf {leaf}" if count > 1 else "")
            for leaf in range(count)
        ]
    return names
