"""Checking gradients against central differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from tensorplug.autodiff.directional import jvp
from tensorplug.autodiff.grad import vjp
from tensorplug.autodiff.tracing import Argnums
from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import quoted
from tensorplug.contract.arguments import real as read_number
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError
from tensorplug.ops.elementwise.arithmetic import multiply
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.complexes import real
from tensorplug.ops.reduction import sum as sum_
from tensorplug.tensors.tree import flatten, paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Mode = Literal["vjp", "jvp"]
Numbers = np.ndarray[Any, np.dtype[Any]]  # float64 or complex128


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    *,
    argnums: int | Sequence[int] | None = None,
    order: Literal[1, 2] = 1,
    modes: Sequence[Mode] = ("vjp", "jvp"),
    directions: int | None = 2,
    rtol: float = 1e-6,
    atol: float = 1e-6,
    eps: float = 1e-5,
    seed: int = 0,
) -> None:
    """Check the gradient of ``f`` at ``args`` against central differences.

    Along a direction u of one leaf x at a time, the numeric derivative is
    ``(f(x + eps u) - f(x - eps u)) / (2 eps)``, in float64. The directions of a complex leaf are
    complex, so that real and imaginary parts move, and f need not be holomorphic. It is compared

    - in mode ``"vjp"`` as ``<dy, numeric>`` with ``<vjp(dy), u>`` for a random dy, where
      ``<a, b>`` is ``real(sum(a * b))``;
    - in mode ``"jvp"`` elementwise with ``jvp(u)``, the vector-Jacobian product of the
      vector-Jacobian product itself, so that rules must be differentiable in dy.

    ``order=2`` checks order 1 and then the gradients of ``<v, vjp(dy)>`` with random v.

    Differences are meaningless at a kink (of a ReLU at 0, or at the tie of a maximum): choose
    points much farther from it than ``eps``, and test the rule's values there separately.

    Args:
        f: takes tensors, or trees of them, and returns floating or complex ones.
        args: its arguments. Floating leaves are converted to float64, complex ones to complex128,
            and differentiated; all others are passed unchanged.
        argnums: position of the arguments to differentiate; all by default.
        order: 1 or 2.
        modes: of ``"vjp"`` and ``"jvp"``.
        directions: the number of random unit directions for each leaf. None checks each element
            separately (both parts of a complex one): the cost grows with the size, but the
            message names the element. The check runs as long as that takes, also for 2**31.
        rtol: relative to the larger of the two magnitudes.
        atol: absolute.
        eps: step of the differences.
        seed: of the random numbers.

    The gradient of a leaf that does not influence the result is zero, not an error.

    Raises:
        AssertionError: a gradient is wrong.
        ArgumentError: ``order``, ``modes`` or ``directions`` is not allowed, or no argument or
            the result is floating or complex.

    Examples:
        >>> tp.testing.check_grads(lambda x: tp.sin(x) * x, [tp.asarray([0.5, 2.0])], order=2)
        >>> @tp.custom_grad
        ... def wrong(x):
        ...     return x**2, lambda dy: dy
        >>> tp.testing.check_grads(wrong, [3.0])
        Traceback (most recent call last):
            ...
        AssertionError: check_grads: order 1, with respect to argument 0, mode vjp: ...

    """
    if not callable(f):
        raise ArgumentError(f"check_grads: f must be a function, got {quoted(f)}")
    if not isinstance(args, Sequence):
        raise ArgumentError(f"check_grads: args must be a list or tuple, got {quoted(args)}")
    if shapes.index(order, "check_grads: order") not in (1, 2):
        raise ArgumentError(f"check_grads: order must be 1 or 2, got {quoted(order)}")
    given: Any = modes
    listed = given if isinstance(given, Sequence) else ()
    if not listed or any(mode not in ("vjp", "jvp") for mode in listed):
        raise ArgumentError(f"check_grads: modes must be of 'vjp' and 'jvp', got {quoted(modes)}")
    if directions is not None and shapes.index(directions, "check_grads: directions") < 1:
        raise ArgumentError(f"check_grads: directions must be at least 1, got {directions}")
    point = _Point.of(f, args, range(len(args)) if argnums is None else argnums)
    if not point.leaves:
        raise ArgumentError("check_grads: at least one argument must be floating or complex")
    check = _Check(
        tuple(modes),
        directions,
        read_number(rtol, "check_grads: rtol"),
        read_number(atol, "check_grads: atol"),
        read_number(eps, "check_grads: eps"),
        np.random.default_rng(_read_seed(seed)),
    )
    check.at(point, "order 1")
    if order == 2:
        for index, name in enumerate(point.names):
            check.at(point.gradient_of(index, check.random), f"order 2, of the gradient of {name}")


class _Value(NamedTuple):
    """The result of a function: its tensors' elements in one row, and the tensors' paths."""

    row: Numbers
    tensors: list[Tensor]
    places: list[str]

    @classmethod
    def of(cls, result: Any) -> Self:
        tensors: list[Any] = flatten(result)[0]
        for tensor in tensors or [result]:
            if not isinstance(tensor, Tensor):
                name = type(tensor).__name__
                raise ArgumentError(f"check_grads: f must return a tensor, got {name}")
            if tensor.dtype not in dt.INEXACT:
                raise ArgumentError(
                    f"check_grads: f must return a floating or complex tensor, got {tensor.type}"
                )
        row = np.concatenate([np.ravel(_array(tensor)) for tensor in tensors])
        return cls(row, tensors, paths(result))

    def direction(self, random: np.random.Generator) -> list[Numbers]:
        """Return random numbers of the tensors' shapes and kinds, of length 1 together."""
        draws = [_draw(random, tensor.shape, tensor.dtype.numpy.kind) for tensor in self.tensors]
        length = float(np.sqrt(sum(np.sum(np.abs(draw) ** 2) for draw in draws)))
        return [draw / max(length, np.finfo(np.float64).tiny) for draw in draws]

    def like(self, result: Any, values: list[Numbers]) -> Any:
        """Return such numbers in the structure, shapes and dtypes of ``result``."""
        rebuild = flatten(result)[1]
        pairs = zip(values, self.tensors, strict=True)
        return rebuild([as_tensor(value, y.dtype) for value, y in pairs])

    def where(self, position: int) -> str:
        """Return the name of an element."""
        for tensor, place in zip(self.tensors, self.places, strict=True):
            if position < tensor.size:
                index = [int(at) for at in np.unravel_index(position, tensor.shape)]
                return f"{f' of the result{place}' if place else ''} at element {index}"
            position -= tensor.size
        raise AssertionError("a position outside of the result")


@dataclass(frozen=True)
class _Point:
    """A function of flat leaves in double precision, and the leaves at which to differentiate."""

    call: Callable[..., Any]
    leaves: list[Numbers]
    names: list[str]

    @classmethod
    def of(cls, f: Callable[..., Any], args: Sequence[Any], argnums: Any) -> Self:
        """Take the inexact leaves of ``args``; the others become part of the function."""
        chosen = {at % len(args) for at in Argnums(argnums).within(args)}
        values, rebuild = flatten(tuple(args))
        names = [
            (at, f"argument {at}{place}") for at, arg in enumerate(args) for place in paths(arg)
        ]
        tensors = {
            place: as_tensor(value)
            for place, (value, (at, _)) in enumerate(zip(values, names, strict=True))
            if at in chosen
        }
        places = [at for at, tensor in tensors.items() if tensor.dtype in dt.INEXACT]

        def flat(*leaves: Tensor) -> Any:
            full: list[Any] = list(values)
            for at, leaf in zip(places, leaves, strict=True):
                full[at] = leaf
            return f(*rebuild(full))

        leaves = [_array(tensors[at]) for at in places]
        return cls(flat, leaves, [names[at][1] for at in places])

    def at(self, index: int, leaf: Any) -> list[Tensor]:
        """Return the leaves as tensors, with another one at ``index``."""
        return [as_tensor(leaf if at == index else own) for at, own in enumerate(self.leaves)]

    def jvp(self, index: int, direction: Numbers) -> Any:
        """Return the derivative along a direction of one leaf."""
        moving = jvp(
            lambda leaf: self.call(*self.at(index, leaf)), [self.leaves[index]], [direction]
        )
        return moving[1]

    def gradient_of(self, index: int, random: np.random.Generator) -> _Point:
        """Return ``<v, vjp(dy)>`` of leaf ``index`` as a function of the leaves and dy."""
        first = self.call
        y = _Value.of(first(*map(as_tensor, self.leaves)))
        dys = [_unit(random, _array(tensor)) for tensor in y.tensors]
        v = _unit(random, self.leaves[index])
        count = len(self.leaves)

        def projected(*leaves_and_dys: Tensor) -> Tensor:
            result, vjp_function = vjp(first, *leaves_and_dys[:count], unconnected="zeros")
            tensors, rebuild = flatten(result)
            cotangents = [
                astype(dy, tensor.dtype)
                for dy, tensor in zip(leaves_and_dys[count:], tensors, strict=True)
            ]
            gradient = vjp_function(rebuild(cotangents))[index]
            return real(sum_(multiply(gradient, as_tensor(v))))

        names = [f"the incoming dy{place}" for place in y.places]
        return _Point(projected, [*self.leaves, *dys], [*self.names, *names])


@dataclass(frozen=True)
class _Check:
    """The settings of one check."""

    modes: tuple[Mode, ...]
    directions: int | None
    rtol: float
    atol: float
    eps: float
    random: np.random.Generator

    def at(self, point: _Point, label: str) -> None:
        """Compare all derivatives of ``point`` in every mode."""
        result, vjp_function = vjp(point.call, *map(as_tensor, point.leaves), unconnected="zeros")
        y = _Value.of(result)
        for index, name in enumerate(point.names):
            for element, u in self._directions(point.leaves[index]):
                where = f"{label}, with respect to {name}{element}, mode"
                numeric = self._difference(point, index, u)
                if "vjp" in self.modes:
                    dys = y.direction(self.random)
                    gradient = vjp_function(y.like(result, dys))[index]
                    _check_type(gradient, point.leaves[index], f"{where} vjp")
                    analytic = np.sum(_array(gradient) * u).real
                    cotangent = np.concatenate([np.ravel(dy) for dy in dys])
                    self._compare(np.sum(numeric * cotangent).real, analytic, f"{where} vjp")
                if "jvp" in self.modes:
                    dot = _Value.of(point.jvp(index, u)).row
                    self._compare(numeric, dot, f"{where} jvp", y)

    def _directions(self, leaf: Numbers) -> Iterator[tuple[str, Numbers]]:
        """Yield unit directions with their names."""
        if self.directions is not None:
            for _ in range(self.directions):
                yield "", _unit(self.random, leaf)
            return
        parts: dict[str, complex] = {"": 1}
        if leaf.dtype.kind == "c":
            parts = {" (real part)": 1, " (imaginary part)": 1j}
        for index in np.ndindex(leaf.shape):
            for part, unit in parts.items():
                u = np.zeros_like(leaf)
                u[index] = unit
                yield f" at element {list(index)}{part}", u

    def _difference(self, point: _Point, index: int, direction: Numbers) -> Numbers:
        def evaluate(step: float) -> Numbers:
            leaf = point.leaves[index] + step * direction
            return _Value.of(point.call(*point.at(index, leaf))).row

        with np.errstate(invalid="ignore"):  # inf - inf is a NaN, which fails the comparison
            difference: Numbers = (evaluate(self.eps) - evaluate(-self.eps)) / (2 * self.eps)
        return difference

    def _compare(self, numeric: Any, analytic: Any, where: str, y: _Value | None = None) -> None:
        """Compare two numbers, or arrays with one number for each element of ``y``."""
        numeric, analytic = np.atleast_1d(numeric), np.atleast_1d(analytic)
        allowed = self.atol + self.rtol * np.maximum(np.abs(numeric), np.abs(analytic))
        # Written so that a NaN on either side is a difference.
        wrong = ~(np.abs(numeric - analytic) <= allowed)
        if not wrong.any():
            return
        at = int(np.argmax(wrong))
        place = "" if y is None else y.where(at)
        raise AssertionError(
            f"check_grads: {where}{place}: numeric {numeric[at]:.10g}, analytic "
            f"{analytic[at]:.10g}, which differ by {abs(numeric[at] - analytic[at]):.3g} "
            f"(rtol={self.rtol:g}, atol={self.atol:g}, eps={self.eps:g})"
        )


def _check_type(gradient: Tensor, leaf: Numbers, where: str) -> None:
    if str(gradient.dtype) != str(leaf.dtype) or gradient.shape != leaf.shape:
        raise AssertionError(
            f"check_grads: {where}: the gradient is {gradient.type}, but the argument is "
            f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
        )


def _draw(random: np.random.Generator, shape: tuple[int, ...], kind: str) -> Numbers:
    draw = np.asarray(random.standard_normal(shape))
    return draw + 1j * random.standard_normal(shape) if kind == "c" else draw


def _unit(random: np.random.Generator, like: Numbers) -> Numbers:
    """Return a random direction of length 1, or of length 0 if there are no elements."""
    draw = _draw(random, like.shape, like.dtype.kind)
    length = float(np.sqrt(np.sum(np.abs(draw) ** 2)))
    return np.asarray(draw / max(length, np.finfo(np.float64).tiny))


def _array(tensor: Tensor) -> Numbers:
    return np.array(tensor.numpy(), np.complex128 if tensor.dtype in dt.COMPLEX else np.float64)


def _read_seed(seed: Any) -> int:
    number = shapes.index(seed, "check_grads: seed")
    if number < 0:
        raise ArgumentError(f"check_grads: seed must not be negative, got {number}")
    return number
