"""The common part of all optimizers: a state beside a tree of parameters, stepped leaf by leaf."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.plugin import (
    ArgumentError,
    DType,
    DTypeError,
    KernelSpec,
    ShapeError,
    TensorType,
    dispatch,
    dispatch_multiple,
    tree,
)
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug import Tensor

    LearningRate = float | Tensor | Callable[[Tensor], float | Tensor]


_STEP: Final = "step"
_MOVABLE: Final = dt.INEXACT


class Optimizer:
    """A rule of optimization as two pure functions, ``init`` and ``update``.

    Neither changes anything: a state is a dict of tensors and trees of tensors, which may be
    saved, copied, or passed to a compiled function like any other.

    Args:
        name: of the rule, for messages.
        spec: the kernel of one step: parameter, gradient, what is kept, then numbers.
        slots: the number that what is kept starts from, by name; None where it is not kept.
        corrections: names of the attributes beta of which the kernel takes ``1 - beta**t``.
        learning_rate: a number, a tensor of rank 0, or a function of the number of steps taken
            before (int32 of rank 0), which returns one of these.
        attributes: of the kernel.

    Raises:
        ArgumentError: the learning rate or an attribute is not what it must be.

    """

    def __init__(
        self,
        name: str,
        spec: KernelSpec,
        slots: Mapping[str, float | None],
        corrections: Sequence[str],
        learning_rate: LearningRate,
        attributes: Mapping[str, Any],
    ) -> None:
        self._name = name
        self._spec = spec
        self._slots = slots
        self._kept = {slot: start for slot, start in slots.items() if start is not None}
        for slot, start in self._kept.items():
            _check_number(name, f"initial_{slot}", start)
        self._learning_rate = _checked_rate(name, learning_rate)
        self._attributes = _checked_attributes(name, spec, attributes)
        self._betas = [self._attributes[correction] for correction in corrections]

    @property
    def kernel(self) -> str:
        """The name of the kernel that steps: ``tp.explain`` says how it runs on a backend."""
        return self._spec.name

    def __repr__(self) -> str:
        attributes = "".join(f", {name}={value!r}" for name, value in self._attributes.items())
        return f"{self._name}({self._learning_rate!r}{attributes})"

    def init(self, params: Any) -> dict[str, Any]:
        """Return the state before the first step.

        Args:
            params: a tree of tensors (nested dicts, lists, tuples, dataclasses) of floating or
                complex dtypes and any shapes.

        Returns:
            ``{"step": 0}`` and, for each thing that the rule keeps, a tree of the structure of
            ``params``. Of a float16 leaf it is float32; of a complex one of shape s it is real
            of shape (*s, 2), with what belongs to the real and to the imaginary part.

        Raises:
            ArgumentError: a leaf is not a tensor.
            DTypeError: a leaf is of integers, booleans or text.

        """
        leaves, rebuild = tree.flatten(params)
        movable = [
            self._movable(*named_leaf)
            for named_leaf in zip(tree.paths(params), leaves, strict=True)
        ]
        state: dict[str, Any] = {_STEP: tp.asarray(0, dtype=tp.int32)}
        for slot, start in self._kept.items():
            state[slot] = rebuild(
                [tp.full_like(_stepped(parameter), start) for parameter in movable]
            )
        return state

    def update(self, params: Any, state: Mapping[str, Any], gradients: Any) -> tuple[Any, Any]:
        """Take one step; return the new parameters and the new state.

        Args:
            params: as for ``init``.
            state: what ``init`` or the last ``update`` returned.
            gradients: a tree of the structure of ``params``, each leaf of the shape and dtype of
                its parameter; as ``tp.grad`` returns them.

        Returns:
            ``(params, state)``, of the structures, shapes and dtypes of those given.

        Raises:
            ArgumentError: the structure of a tree differs from ``params``, a leaf is not a tensor,
                the state is another optimizer's, or the schedule returns no number.
            ShapeError, DTypeError: a leaf of ``gradients`` or of the state does not fit its
                parameter. Messages name the leaf.

        """
        leaves, rebuild = tree.flatten(params)
        names = tree.paths(params)
        movable = [self._movable(*named_leaf) for named_leaf in zip(names, leaves, strict=True)]
        leaf_gradients = self._matched("gradients", params, gradients)
        for where, parameter, gradient in zip(names, movable, leaf_gradients, strict=True):
            self._check("gradients", where, gradient, parameter.dtype, parameter.shape)
        kept = self._kept_by(state, params, movable, names)
        numbers = self._numbers(
            state[_STEP], {_stepping(parameter.dtype) for parameter in movable}
        )
        moved = []
        after: dict[str, list[Tensor]] = {slot: [] for slot in self._kept}
        for at, (parameter, gradient) in enumerate(zip(movable, leaf_gradients, strict=True)):
            slots = {slot: kept[slot][at] for slot in self._kept}
            new, *others = self._step(parameter, gradient, slots, numbers)
            moved.append(new)
            for slot, other in zip(self._kept, others, strict=True):
                after[slot].append(other)
        trees = {slot: rebuild(leaves) for slot, leaves in after.items()}
        return rebuild(moved), {_STEP: state[_STEP] + 1, **trees}

    def _step(
        self,
        parameter: Tensor,
        gradient: Tensor,
        slots: Mapping[str, Tensor],
        numbers: Mapping[DType, Sequence[Tensor]],
    ) -> list[Tensor]:
        """Return the new parameter and what is kept of it."""
        p, g = _stepped(parameter), _stepped(gradient)
        keeps = [slots.get(slot) for slot in self._slots]
        inputs = (p, g, *keeps, *numbers[p.dtype])
        if self._spec.multiple_outputs:
            new, *others = dispatch_multiple(self._spec, *inputs, **self._attributes)
        else:
            new, others = dispatch(self._spec, *inputs, **self._attributes), []
        return [_unstepped(new, parameter.dtype), *others]

    def _numbers(self, step: Tensor, dtypes: set[DType]) -> dict[DType, list[Tensor]]:
        """Return, by dtype, what the kernel takes beside arrays: the rate and corrections.

        ``1 - beta**t`` is ``-expm1(t log(beta))``, which is right to the last bits where beta is
        close to 1 and the difference would have lost half of them.
        """
        rate = self._rate(step)
        found: dict[DType, list[Tensor]] = {}
        for dtype in dtypes:
            t = (step + 1).astype(dtype)
            corrections = [
                -tp.expm1(t * math.log(beta)) if beta else tp.ones_like(t) for beta in self._betas
            ]
            own = (
                tp.full((), rate, dtype=dtype)
                if _is_number(rate)
                else rate.astype(dtype, copy=False)
            )
            found[dtype] = [own, *corrections]
        return found

    def _rate(self, step: Tensor) -> Any:
        rate = self._learning_rate
        if callable(rate):
            rate = rate(step)
            if not _is_number(rate) and not (isinstance(rate, tp.Tensor) and rate.shape == ()):
                raise ArgumentError(
                    f"{self._name}: the schedule must return a number or a tensor of rank 0, got "
                    f"{_shown(rate)}"
                )
        return rate

    # Checks -----------------------------------------------------------------------------------

    def _movable(self, where: str, leaf: Any) -> Tensor:
        value = leaf.read() if isinstance(leaf, tp.Variable) else leaf
        if not isinstance(value, tp.Tensor):
            raise ArgumentError(
                f"{self._name}: params{where} must be a tensor, got {_shown(leaf)}"
            )
        if value.dtype not in _MOVABLE:
            raise DTypeError(
                f"{self._name}: params{where} is {value.type}, but only floating and complex "
                "numbers can move"
            )
        return value

    def _kept_by(
        self, state: Mapping[str, Any], params: Any, movable: Sequence[Tensor], names: list[str]
    ) -> dict[str, list[Any]]:
        wanted = [_STEP, *self._kept]
        if not hasattr(state, "keys") or set(state) != set(wanted):
            got = sorted(state) if hasattr(state, "keys") else _shown(state)
            raise ArgumentError(f"{self._name}: the state must hold {wanted}, got {got}")
        found = {}
        for slot in self._kept:
            what = f"state[{slot!r}]"
            leaves = found[slot] = self._matched(what, params, state[slot])
            for where, parameter, leaf in zip(names, movable, leaves, strict=True):
                shape = parameter.shape + ((2,) if parameter.dtype in dt.COMPLEX else ())
                self._check(what, where, leaf, _stepping(parameter.dtype), shape)
        return found

    def _matched(self, what: str, params: Any, other: Any) -> list[Any]:
        def message(where: str, mine: str, theirs: str) -> str:
            return f"{self._name}: {what}{where} is {theirs}, but params{where} is {mine}"

        return tree.matched(params, other, message)

    def _check(
        self, what: str, where: str, tensor: Any, dtype: DType, shape: tuple[int, ...]
    ) -> None:
        """Refuse a leaf without the dtype and shape of ``params{where}``."""
        if not isinstance(tensor, tp.Tensor):
            raise ArgumentError(
                f"{self._name}: {what}{where} must be a tensor, got {_shown(tensor)}"
            )
        if tensor.dtype is not dtype or tensor.shape != shape:
            kind = DTypeError if tensor.dtype is not dtype else ShapeError
            raise kind(
                f"{self._name}: {what}{where} is {tensor.type}, but params{where} asks for "
                f"{TensorType(dtype, shape)}"
            )


def _checked_rate(name: str, rate: Any) -> LearningRate:
    if not callable(rate) and not (isinstance(rate, tp.Tensor) and rate.shape == ()):
        also = ", a tensor of rank 0 or a function of the step"
        _check_number(name, "learning_rate", rate, also)
    return rate  # type: ignore[no-any-return]  # checked above


def _check_number(name: str, what: str, value: Any, also: str = "") -> None:
    if not _is_number(value) or not 0 <= value < math.inf:
        raise ArgumentError(
            f"{name}: {what} must be a number, not negative and finite{also}, got {_shown(value)}"
        )


def _checked_attributes(
    name: str, spec: KernelSpec, attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return attributes in the form that kernels see; refuse invalid ones."""
    checked = {}
    for key, value in attributes.items():
        try:
            checked[key] = spec.attributes[key].canonical(value, {})
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {key} {error}") from None
    return checked


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return str(value.type) if isinstance(value, tp.Tensor) else f"{value!r:.60}"


# Kernels see float32 and float64 ------------------------------------------------------------


def _stepping(dtype: DType) -> DType:
    """Return the dtype in which parameters of ``dtype`` step."""
    return dt.real_part(dtype).compute


def _stepped(x: Tensor) -> Tensor:
    """Return a leaf as kernels take it; of complex numbers both parts in a last axis."""
    if x.dtype in dt.COMPLEX:
        return tp.stack([tp.real(x), tp.imag(x)], axis=-1)
    return x.astype(_stepping(x.dtype), copy=False)


def _unstepped(x: Tensor, dtype: DType) -> Tensor:
    """Return a kernel's result as a leaf of ``dtype``."""
    if dtype in dt.COMPLEX:
        return tp.complex(x[..., 0], x[..., 1])
    return x.astype(dtype, copy=False)
