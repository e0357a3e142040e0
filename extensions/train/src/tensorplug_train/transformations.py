"""Optimizers as pure functions on trees of tensors: ``init``, ``update`` and ``step``.

``rules`` has their formulas; the classes of ``optimizers`` apply them to variables. A complex
parameter is updated like two real ones, its real and imaginary parts, as in PyTorch: squares and
magnitudes are those of each part.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import tensorplug as tp
from tensorplug import Tensor, Variable
from tensorplug.plugin import (
    ArgumentError,
    DTypeError,
    ShapeError,
    arguments,
    as_tensor,
    compiled_state,
    dispatch,
    dispatch_multiple,
    tree,
)
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import DType, KernelSpec

    LearningRate: TypeAlias = float | Tensor | Callable[[Tensor], float | Tensor]
    Slots: TypeAlias = dict[str, Tensor]  # the state of one parameter
    Formula: TypeAlias = Callable[[Tensor, Slots, "Numbers"], tuple[Tensor, Any]]

T = TypeVar("T")  # a tree of tensors

STEP: Final = "step"
"""The name of the number of steps in a state."""


class Numbers:
    """What the formulas of one step share: the learning rate and the number of the step.

    ``taken``: how many steps came before, a tensor of rank 0 or a Python number.
    """

    def __init__(self, taken: Any, learning_rate: LearningRate) -> None:
        self._t = taken + 1
        self._rate: Any = learning_rate
        if callable(learning_rate):
            whole = int(taken) if type(taken) is float else taken  # not in tracing
            self._rate = learning_rate(as_tensor(whole, dt.int32))
            check_rate(self._rate, "the schedule must return")
        self._known: dict[Any, Any] = {}

    def rate(self, dtype: DType) -> Any:
        """Return the learning rate for parameters of ``dtype``."""
        return _as(self._rate, dtype)

    def t(self, dtype: DType) -> Any:
        """Return the number of this step, from 1."""
        return _as(self._t, dtype)

    def correction(self, beta: float, dtype: DType) -> Any:
        """Return ``1 - beta**t``, which corrects the bias of a running mean.

        For a tensor it is ``-tp.expm1(t * log(beta))``, which is accurate in float32, too.
        """
        if not isinstance(self._t, Tensor):
            return 1.0 - beta**self._t
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


class FusedStep(NamedTuple):
    """The kernel that takes a whole step of one parameter, instead of the formula.

    ``slots``: the slots that the kernel takes and returns, in its order; ``absent``: how many
    optional inputs after them are not given; ``corrections``: the beta of each ``1 - beta**t``
    that it takes after the rate; ``decay``: of the rate, per step.
    """

    spec: KernelSpec
    inputs: tuple[str, ...] = ()  # slots, or "" for an optional input that is not given
    corrections: tuple[float, ...] = ()
    attributes: Mapping[str, Any] = {}
    decay: float = 0.0

    def __call__(self, parameter: Tensor, g: Tensor, slots: Slots, numbers: Numbers) -> Tensor:
        """Return the new parameter; set ``slots``."""
        dtype = parameter.dtype
        kept = [slots[name] if name else None for name in self.inputs]
        values = [decayed(numbers, self.decay, dtype)]
        values += [numbers.correction(beta, dtype) for beta in self.corrections]
        scalars = [
            value if isinstance(value, Tensor) else tp.full((), value, dtype=dtype)
            for value in values
        ]
        inputs = (parameter, g, *kept, *scalars)
        if not self.spec.multiple_outputs:
            return dispatch(self.spec, *inputs, **self.attributes)
        new, *after = dispatch_multiple(self.spec, *inputs, **self.attributes)
        slots.update(zip(filter(None, self.inputs), after, strict=True))
        return new


def decayed(numbers: Numbers, decay: float, dtype: DType) -> Any:
    """Return the learning rate divided by ``1 + decay * (t - 1)``."""
    rate = numbers.rate(dtype)
    return rate / (1.0 + decay * (numbers.t(dtype) - 1)) if decay else rate


class _Leaf(NamedTuple):
    """One parameter, or its gradient: where it is in the tree, and its value."""

    where: str
    value: Tensor


class GradientTransformation:
    """An optimizer as pure functions, in the manner of Optax (Hessel et al. 2020).

    Nothing is changed in place, so steps can be parts of compiled functions, and states can be
    saved and compared. Made by ``sgd``, ``adam`` and the others.

    ``name``: for messages; ``slots``: the initial number of each further tensor that the rule
    keeps, by name; ``formula``: computes a step of one parameter; ``learning_rate``: a number, a
    tensor of rank 0, or a schedule, as for ``sgd``; ``fused``: the kernel of a step, which
    ``step`` calls outside of compiled functions, where programs fuse the formula themselves;
    ``weight_decay``: g + weight_decay * w takes the place of the gradient g, or, if ``decoupled``,
    a step also subtracts the learning rate times weight_decay * w.

    Examples:
        >>> optimizer = tp.train.sgd(0.5)
        >>> params = {"w": tp.asarray([1.0, -2.0])}
        >>> state = optimizer.init(params)
        >>> gradients = tp.grad(lambda params: tp.sum(tp.square(params["w"])))(params)
        >>> updates, state = optimizer.update(gradients, state, params)
        >>> tp.train.apply_updates(params, updates)["w"].tolist()
        [0.0, 0.0]

    """

    def __init__(
        self,
        name: str,
        slots: Mapping[str, float],
        formula: Formula,
        learning_rate: LearningRate,
        *,
        fused: FusedStep | None = None,
        weight_decay: float = 0.0,
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
        self._slots = slots
        self._formula = formula
        self._learning_rate = learning_rate
        self._weight_decay = weight_decay
        self._decoupled = decoupled
        self._fused = fused

    def __repr__(self) -> str:
        return f"{self._name}({self._learning_rate!r})"

    @property
    def slots(self) -> Sequence[str]:
        """The names of the trees in the state, besides ``"step"``."""
        return list(self._slots)

    def init(self, params: Any) -> dict[str, Any]:
        """Return the state before the first step.

        Args:
            params: a tree of tensors (or variables) of floating or complex dtypes.

        Returns:
            ``{"step": 0}``, an int32 tensor, and for each slot a tree like ``params``. For a
            complex leaf of shape s it is real of shape ``(*s, 2)``.

        Raises:
            ArgumentError: a leaf is not a tensor.
            DTypeError: a leaf is of integers, booleans or text.

        """
        leaves = self._leaves("params", params)
        build = tree.flatten(params)[1]
        state: dict[str, Any] = {STEP: tp.zeros((), dtype=dt.int32)}
        for slot in self._slots:
            state[slot] = build([self.start(leaf.value)[slot] for leaf in leaves])
        return state

    def start(self, parameter: Tensor) -> Slots:
        """Return the state of one parameter before the first step, by slot."""
        parts = _split(parameter)
        return {slot: tp.full_like(parts, start) for slot, start in self._slots.items()}

    def update(
        self, gradients: T, state: Mapping[str, Any], params: Any = None
    ) -> tuple[T, dict[str, Any]]:
        """Return what to add to the parameters, and the new state.

        Args:
            gradients: a tree like the parameters, such as ``grad`` returns.
            state: what ``init`` or the last ``update`` returned.
            params: the parameters, which only weight decay needs.

        Returns:
            ``(updates, state)``; ``apply_updates(params, updates)`` takes the step.

        Raises:
            ArgumentError: the trees differ in structure, a leaf is not a tensor, or the state
                belongs to another optimizer.
            ShapeError, DTypeError: a leaf of the state does not fit the gradient.

        """
        build = tree.flatten(gradients)[1]
        leaves = self._leaves("gradients", gradients)
        parameters: list[Any] = [None] * len(leaves)
        if self._weight_decay:
            if params is None:
                raise ArgumentError(f"{self._name}: update needs params for weight_decay")
            parameters = _matched(self._name, "params", gradients, params)
        slots, numbers = self._begin(leaves, gradients, state)
        updates = []
        for leaf, parameter, kept in zip(leaves, parameters, slots, strict=True):
            direction, factor = self.direction(leaf.value, kept, numbers, parameter)
            change = direction * -factor
            if self._decoupled and parameter is not None:
                rate = numbers.rate(change.dtype)
                change = change - _split(parameter) * (rate * self._weight_decay)
            updates.append(_join(change, leaf.value.dtype))
        return build(updates), self._after(state, slots, build)

    def step(
        self, gradients: Any, state: Mapping[str, Any], params: T
    ) -> tuple[T, dict[str, Any]]:
        """Return the new parameters and the new state.

        It does the same as ``update`` and ``apply_updates``, in fewer passes over memory: the
        rules of which a backend has the whole step as a kernel take one.

        Args and errors: see ``update``; ``params`` is the tree of parameters.
        """
        leaves = self._leaves("params", params)
        ordered = _matched(self._name, "gradients", params, gradients)
        for leaf, gradient in zip(leaves, ordered, strict=True):
            self._check_like("gradients", leaf, gradient, leaf.value.dtype, leaf.value.shape)
        build = tree.flatten(params)[1]
        slots, numbers = self._begin(leaves, params, state)
        moved = [
            self._moved(leaf.value, gradient, kept, numbers)
            for leaf, gradient, kept in zip(leaves, ordered, slots, strict=True)
        ]
        return build(moved), self._after(state, slots, build)

    def _moved(
        self, parameter: Tensor, gradient: Tensor, slots: Slots, numbers: Numbers
    ) -> Tensor:
        p, dtype = _split(parameter), parameter.dtype
        fused = self._fused
        if fused and p.dtype in fused.spec.accepts and not compiled_state.is_traced():
            return _join(fused(p, _split(gradient), slots, numbers), dtype)
        direction, factor = self.direction(gradient, slots, numbers, parameter)
        if self._decoupled:
            p = p * (1.0 - numbers.rate(p.dtype) * self._weight_decay)
        return _join(tp.multiply_add(direction, -factor, p), dtype)

    def direction(
        self, gradient: Tensor, slots: Slots, numbers: Numbers, parameter: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """Return the direction of a step and its factor, as ``move`` takes them; set ``slots``.

        ``parameter``: needed for weight decay.
        """
        g = _split(gradient)
        if self._weight_decay and not self._decoupled and parameter is not None:
            g = g + _split(parameter) * self._weight_decay
        return self._formula(g, slots, numbers)

    def numbers(self, taken: Any) -> Numbers:
        """Return what all parameters share in the step after ``taken`` steps."""
        return Numbers(taken, self._learning_rate)

    def _begin(
        self, leaves: list[_Leaf], like: Any, state: Mapping[str, Any]
    ) -> tuple[list[Slots], Numbers]:
        """Return the slots of each leaf of the tree ``like``, after checks, and the numbers."""
        if not hasattr(state, "keys") or set(state) != {STEP, *self._slots}:
            got = sorted(state) if hasattr(state, "keys") else repr(state)
            expected = [STEP, *self._slots]
            raise ArgumentError(f"{self._name}: the state must have {expected}, got {got}")
        slots: list[Slots] = [{} for _ in leaves]
        for slot in self._slots:
            values = _matched(self._name, f"state[{slot!r}]", like, state[slot])
            for leaf, kept, value in zip(leaves, slots, values, strict=True):
                dtype = dt.real_part(leaf.value.dtype)
                shape = leaf.value.shape + ((2,) if leaf.value.dtype in dt.COMPLEX else ())
                self._check_like(f"state[{slot!r}]", leaf, value, dtype, shape)
                kept[slot] = value
        return slots, self.numbers(state[STEP])

    def _after(self, state: Mapping[str, Any], slots: list[Slots], build: Any) -> dict[str, Any]:
        trees = {slot: build([kept[slot] for kept in slots]) for slot in self._slots}
        return {STEP: state[STEP] + 1, **trees}

    def _leaves(self, what: str, given: Any) -> list[_Leaf]:
        found = []
        for where, leaf in zip(tree.paths(given), tree.flatten(given)[0], strict=True):
            value = leaf.read() if isinstance(leaf, Variable) else leaf
            check_inexact(value, f"{self._name}: {what}{where}")
            found.append(_Leaf(where, value))
        return found

    def _check_like(
        self, what: str, leaf: _Leaf, value: Any, dtype: DType, shape: tuple[int, ...]
    ) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{self._name}: {what}{leaf.where} must be a tensor, got {value!r:.60}"
            )
        if value.dtype is not dtype or value.shape != shape:
            kind = DTypeError if value.dtype is not dtype else ShapeError
            raise kind(
                f"{self._name}: {what}{leaf.where} is {value.type}, which does not fit "
                f"{leaf.value.type}"
            )


def apply_updates(params: T, updates: Any) -> T:
    """Return a tree with the sums of matching leaves: the parameters after a step.

    ``params``: a tree of parameters; ``updates``: a tree of the same structure, as ``update``
    returns it.

    Raises:
        ArgumentError: the trees differ in structure.

    Examples:
        >>> params = {"w": tp.asarray([1.0, 2.0])}
        >>> tp.train.apply_updates(params, {"w": tp.asarray([-0.5, 0.25])})
        {'w': Tensor([0.5 , 2.25], dtype=float32, device='cpu')}

    """
    moved: T = tree.tree_map(tp.add, params, updates)
    return moved


def move(parameter: Tensor, direction: Tensor, factor: Any) -> Tensor:
    """Return ``parameter - factor * direction``; of complex numbers both have their parts."""
    if parameter.dtype in dt.COMPLEX:
        return _join(tp.multiply_add(direction, -factor, _split(parameter)), parameter.dtype)
    return tp.multiply_add(direction, -factor, parameter)


def _split(x: Tensor) -> Tensor:
    """Return a complex tensor's parts stacked in a last axis; any other tensor unchanged."""
    if x.dtype not in dt.COMPLEX:
        return x
    return tp.stack([tp.real(x), tp.imag(x)], axis=-1)


def _join(x: Tensor, dtype: DType) -> Tensor:
    return tp.complex(x[..., 0], x[..., 1]) if dtype in dt.COMPLEX else x


def _matched(name: str, what: str, like: Any, other: Any) -> list[Any]:
    def message(where: str, mine: str, theirs: str) -> str:
        return f"{name}: {what}{where} is {theirs}, but {mine} is needed"

    return tree.matched(like, other, message)


def check_inexact(value: Any, what: str) -> None:
    """Check that a leaf of a tree, called ``what``, is a floating or complex tensor.

    Raises:
        ArgumentError, DTypeError: it is not.

    """
    if not isinstance(value, Tensor):
        raise ArgumentError(f"{what} must be a tensor, got {value!r:.60}")
    if value.dtype not in dt.INEXACT:
        raise DTypeError(f"{what} is {value.type}, but must be of floating or complex numbers")


def check_rate(rate: Any, what: str, also: str = "") -> None:
    """Refuse anything but a learning rate.

    Raises:
        ArgumentError: it is not a number, a tensor of rank 0 or, with ``also``, a function.

    """
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    if is_number or (isinstance(rate, Tensor) and rate.shape == ()) or (also and callable(rate)):
        return
    got = rate.type if isinstance(rate, Tensor) else arguments.quoted(rate)
    allowed = f"{what} a number or a tensor of rank 0"
    raise ArgumentError(f"{allowed} {also}, got {got}" if also else f"{allowed}, got {got}")
