"""Rules: optimizers that compute each parameter's step from its gradient and a few slots.

``rules`` has the formulas. A complex parameter is updated like two real ones, its real and
imaginary parts, as in PyTorch: squares and magnitudes are those of each part.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar
from weakref import proxy

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import (
    ArgumentError,
    DTypeError,
    ShapeError,
    arguments,
    as_tensor,
    compiled_state,
    tree,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_train.transformation import GradientTransformation, named_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.plugin import DType

    LearningRate: TypeAlias = float | Tensor | Callable[[Tensor], float | Tensor]
    Mask: TypeAlias = Any  # a tree of bools like the parameters, or a function of them
    Slots: TypeAlias = dict[str, Tensor]  # the state of one parameter
    Formula: TypeAlias = Callable[[Tensor, Slots, "Numbers"], tuple[Tensor, Any]]

T = TypeVar("T")  # a tree of tensors

STEP: Final = "step"
"""The name of the number of steps in a state."""


class Numbers:
    """What the formulas of one step share: the learning rate and the number of the step.

    ``taken``: how many steps came before; ``given``: the learning rate, in any dtype.
    """

    def __init__(self, taken: Any, learning_rate: LearningRate) -> None:
        taken = as_tensor(taken, dt.int32)
        self._t = taken + 1
        self.given: Any = learning_rate
        if callable(learning_rate):
            self.given = learning_rate(taken)
            check_rate(self.given, "the schedule must return")
        self._known: dict[Any, Any] = {}

    def rate(self, dtype: DType) -> Any:
        """Return the learning rate for parameters of ``dtype``."""
        return _as(self.given, dtype)

    def t(self, dtype: DType) -> Any:
        """Return the number of this step, from 1."""
        return _as(self._t, dtype)

    def correction(self, beta: float, dtype: DType) -> Any:
        """Return ``1 - beta**t``, which corrects the bias of a running mean.

        It is ``-tp.expm1(t * log(beta))``, which is accurate in float32, too.
        """
        key = (beta, dtype)
        if key not in self._known:
            wide = dtype if dtype is dt.float64 else dt.float32
            t = tp.astype(self._t, wide)
            exact = -tp.expm1(t * math.log(beta)) if beta else tp.ones_like(t)
            self._known[key] = _as(exact, dtype)
        return self._known[key]


def _as(number: Any, dtype: DType) -> Any:
    """Return a tensor of rank 0 in ``dtype``; a Python number unchanged."""
    return tp.astype(number, dtype, copy=False) if isinstance(number, Tensor) else number


def decayed(numbers: Numbers, decay: float, dtype: DType) -> Any:
    """Return the learning rate divided by ``1 + decay * (t - 1)``."""
    rate = numbers.rate(dtype)
    return rate / (1.0 + decay * (numbers.t(dtype) - 1)) if decay else rate


class _Leaf(NamedTuple):
    """One parameter, or its gradient: where it is in the tree, and its value."""

    where: str
    value: Tensor


class Rule(GradientTransformation):
    """An optimizer that computes the steps of all parameters by one formula.

    ``name``: for messages; ``slots``: the initial number of each further tensor that the rule
    keeps, by name; ``formula``: computes a step of one parameter; ``learning_rate``: a number, a
    tensor of rank 0, or a schedule, as for ``sgd``; ``weight_decay``: g + weight_decay * w takes
    the place of the gradient g, or, if ``decoupled``, a step also subtracts the learning rate
    times weight_decay * w; ``mask``: see ``sgd``.
    """

    needs_params = False  # whether the formula reads the parameter, too

    def __init__(
        self,
        name: str,
        slots: Mapping[str, float],
        formula: Formula,
        learning_rate: LearningRate,
        *,
        weight_decay: float = 0.0,
        mask: Mask | None = None,
        decoupled: bool = False,
    ) -> None:
        decay: Any = weight_decay
        if not isinstance(decay, int | float) or not 0 <= decay < math.inf:
            raise ArgumentError(
                f"{name}: weight_decay must be a finite number, not negative, got "
                f"{arguments.quoted(weight_decay)}"
            )
        check_rate(learning_rate, f"{name}: learning_rate must be", "or a function of the step")
        self._name = name
        self._start = slots
        self._formula = formula
        self._learning_rate = learning_rate
        self._weight_decay = float(weight_decay)
        self._mask = mask
        self._decoupled = decoupled

    @cached_property
    def _compiled(self) -> Any:
        own: Any = proxy(self)  # programs would else live until garbage is collected
        return tp.compile(lambda *arguments: own._move(*arguments))  # noqa: PLW0108

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has, too: all but the program, which is of this object."""
        return {name: value for name, value in vars(self).items() if name != "_compiled"}

    def __repr__(self) -> str:
        return f"{self._name}({self._learning_rate!r})"

    def init(self, params: Any) -> dict[str, Any]:
        """Return the state before the first step.

        Returns:
            ``{"step": 0}``, an int32 tensor, and for each slot a tree like ``params``. For a
            complex leaf of shape s it is real of shape ``(*s, 2)``.

        Args and errors: see ``GradientTransformation``.

        """
        starts = [self.start(leaf.value) for leaf in self._leaves("params", params)]
        build = tree.flatten(params)[1]
        trees = {slot: build([start[slot] for start in starts]) for slot in self._start}
        return {STEP: tp.zeros((), dtype=dt.int32), **trees}

    def start(self, parameter: Tensor) -> Slots:
        """Return the state of one parameter before the first step, by slot."""
        parts = split(parameter)
        return {slot: tp.full_like(parts, start) for slot, start in self._start.items()}

    def shape(self, slot: str, parts: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return the shape of a slot; ``parts``: that of the parameter, if complex as parts."""
        return parts

    def update(
        self,
        gradients: T,
        state: Mapping[str, Any],
        params: Any = None,
        **_loss: Any,
    ) -> tuple[T, dict[str, Any]]:
        """Return what to add to the parameters, and the new state; see the base class."""
        build = tree.flatten(gradients)[1]
        leaves = self._leaves("gradients", gradients)
        parameters: list[Any] = [None] * len(leaves)
        if self._weight_decay or self.needs_params:
            if params is None:
                why = "" if self.needs_params else " for weight_decay"
                raise ArgumentError(f"{self._name}: update needs params{why}")
            parameters = matched(self._name, "params", gradients, params)
        slots, numbers = self._begin(leaves, gradients, state)
        updates = []
        for leaf, w, kept, decay in zip(
            leaves, parameters, slots, self._decays(params, len(leaves)), strict=True
        ):
            direction, factor = self.direction(leaf.value, kept, numbers, w, decay)
            change = direction * -factor
            if self._decoupled and decay:
                change = change - split(w) * (numbers.rate(change.dtype) * decay)
            updates.append(join(change, leaf.value.dtype))
        return build(updates), self._after(state[STEP] + 1, slots, build)

    def step(
        self,
        gradients: Any,
        state: Mapping[str, Any],
        params: T,
        **_loss: Any,
    ) -> tuple[T, dict[str, Any]]:
        """Return the new parameters and the new state; see the base class."""
        leaves = self._leaves("params", params)
        ordered = matched(self._name, "gradients", params, gradients)
        for leaf, gradient in zip(leaves, ordered, strict=True):
            self._check_like("gradients", leaf, gradient, leaf.value.dtype, leaf.value.shape)
        build = tree.flatten(params)[1]
        slots, numbers = self._begin(leaves, params, state)
        decays = self._decays(params, len(leaves))
        # Outside of compiled functions, the formulas of all parameters are a program of their own.
        move = self._move if compiled_state.is_traced() else self._compiled
        parameters = [leaf.value for leaf in leaves]
        moved, slots, taken = move(parameters, ordered, slots, state[STEP], numbers.given, decays)
        return build(moved), self._after(taken, slots, build)

    def _move(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        slots: list[Slots],
        taken: Tensor,
        rate: Any,
        decays: list[float],
    ) -> tuple[list[Tensor], list[Slots], Tensor]:
        """Return the parameters and their slots after a step, and the number of steps."""
        numbers, moved, after = Numbers(taken, rate), [], []
        for parameter, gradient, before, decay in zip(
            parameters, gradients, slots, decays, strict=True
        ):
            kept = dict(before)
            direction, factor = self.direction(gradient, kept, numbers, parameter, decay)
            p = split(parameter)
            if self._decoupled and decay:
                p = p * (1.0 - numbers.rate(p.dtype) * decay)
            moved.append(join(tp.multiply_add(direction, -factor, p), parameter.dtype))
            after.append(kept)
        return moved, after, taken + 1

    def direction(
        self, gradient: Tensor, slots: Slots, numbers: Numbers, parameter: Any, decay: float
    ) -> tuple[Tensor, Any]:
        """Return the direction of a step and the factor to subtract it with; set ``slots``.

        ``parameter``: needed only with ``decay``, the parameter's own weight decay.
        """
        g = split(gradient)
        if decay and not self._decoupled:
            g = g + split(parameter) * decay
        return self._formula(g, slots, numbers)

    def _decays(self, params: Any, count: int) -> list[float]:
        """Return the weight decay of each of the ``count`` parameters."""
        if self._mask is None or not self._weight_decay:
            return [self._weight_decay] * count
        mask = self._mask(params) if callable(self._mask) else self._mask
        chosen = matched(self._name, "mask", params, mask)
        for where, each in zip(tree.paths(params), chosen, strict=True):
            if not isinstance(each, bool):
                raise ArgumentError(
                    f"{self._name}: mask{where} must be a bool, got {arguments.quoted(each)}"
                )
        return [self._weight_decay if each else 0.0 for each in chosen]

    def _begin(
        self, leaves: list[_Leaf], like: Any, state: Mapping[str, Any]
    ) -> tuple[list[Slots], Numbers]:
        """Return the slots of each leaf of the tree ``like``, after checks, and the numbers."""
        expected = [STEP, *self._start]
        if not hasattr(state, "keys") or set(state) != set(expected):
            got = sorted(state) if hasattr(state, "keys") else repr(state)
            raise ArgumentError(f"{self._name}: the state must have {expected}, got {got}")
        slots: list[Slots] = [{} for _ in leaves]
        for slot in self._start:
            values = matched(self._name, f"state[{slot!r}]", like, state[slot])
            for leaf, kept, value in zip(leaves, slots, values, strict=True):
                dtype = dt.real_part(leaf.value.dtype)
                parts = leaf.value.shape + ((2,) if leaf.value.dtype in dt.COMPLEX else ())
                shape = self.shape(slot, parts)
                self._check_like(f"state[{slot!r}]", leaf, value, dtype, shape)
                kept[slot] = value
        return slots, Numbers(state[STEP], self._learning_rate)

    def rate(self, state: Mapping[str, Any]) -> float | Tensor | None:
        """Return the learning rate of the next step."""
        rate: float | Tensor = Numbers(state[STEP], self._learning_rate).rate(dt.float32)
        return rate

    def _after(self, taken: Tensor, slots: list[Slots], build: Any) -> dict[str, Any]:
        trees = {slot: build([kept[slot] for kept in slots]) for slot in self._start}
        return {STEP: taken, **trees}

    def _leaves(self, what: str, given: Any) -> list[_Leaf]:
        return [_Leaf(*named) for named in named_leaves(f"{self._name}: {what}", given)]

    def _check_like(
        self, what: str, leaf: _Leaf, value: Any, dtype: DType, shape: tuple[int, ...]
    ) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{self._name}: {what}{leaf.where} must be a tensor, got {arguments.quoted(value)}"
            )
        if value.dtype is not dtype or value.shape != shape:
            kind = DTypeError if value.dtype is not dtype else ShapeError
            raise kind(
                f"{self._name}: {what}{leaf.where} is {value.type}, which does not fit "
                f"{leaf.value.type}"
            )


def split(x: Tensor) -> Tensor:
    """Return a complex tensor's parts stacked in a last axis; any other tensor unchanged."""
    if x.dtype not in dt.COMPLEX:
        return x
    return tp.stack([tp.real(x), tp.imag(x)], axis=-1)


def join(x: Tensor, dtype: DType) -> Tensor:
    """Return what ``split`` made parts of."""
    return tp.complex(x[..., 0], x[..., 1]) if dtype in dt.COMPLEX else x


def matched(name: str, what: str, like: Any, other: Any) -> list[Any]:
    """Return the leaves of ``other`` in the order of those of ``like``.

    Raises:
        ArgumentError: the structures differ.

    """

    def message(where: str, mine: str, theirs: str) -> str:
        return f"{name}: {what}{where} is {theirs}, but {mine} is needed"

    return tree.matched(like, other, message)


def check_rate(rate: Any, what: str, also: str = "") -> None:
    """Refuse anything but a learning rate.

    Raises:
        ArgumentError: it is not a number, a tensor of rank 0 or, with ``also``, a function.

    """
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    if is_number and isinstance(rate, int) and abs(rate) > 2**1000:
        raise ArgumentError(f"{what} a number of float64, got {arguments.quoted(rate)}")
    if is_number or (isinstance(rate, Tensor) and rate.shape == ()) or (also and callable(rate)):
        return
    got = rate.type if isinstance(rate, Tensor) else arguments.quoted(rate)
    allowed = f"{what} a number or a tensor of rank 0"
    raise ArgumentError(f"{allowed} {also}, got {got}" if also else f"{allowed}, got {got}")
