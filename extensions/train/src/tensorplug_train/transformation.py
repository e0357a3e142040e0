"""What all optimizers are: pure functions on trees of tensors, which can also update variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import tensorplug as tp
from tensorplug import Tensor, Variable
from tensorplug.plugin import (
    ArgumentError,
    CompileError,
    DTypeError,
    ShapeError,
    arguments,
    as_tensor,
    compiled_state,
    tree,
)
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")  # a tree of tensors
R = TypeVar("R")


class GradientTransformation(ABC):
    """An optimizer as pure functions, in the manner of Optax (Hessel et al. 2020).

    ``init``, ``update`` and ``step`` change nothing in place, so steps can be parts of compiled
    functions, and states can be saved and compared. ``sgd``, ``adam`` and the others return such
    objects; ``LossScaled``, ``chain`` and ``accumulate`` make one of another. A state is a dict.

    ``minimize`` and ``apply_gradients`` update variables, in the manner of TensorFlow.js. Only
    these keep a state in this object: ``state``, by the names of the variables. They may be parts
    of compiled functions: each call of the function then takes the step. Take a new object
    for each model that is trained with them.

    Examples:
        >>> optimizer = tp.train.sgd(0.5)
        >>> params = {"w": tp.asarray([1.0, -2.0])}
        >>> state = optimizer.init(params)
        >>> gradients = tp.grad(lambda params: tp.sum(tp.square(params["w"])))(params)
        >>> updates, state = optimizer.update(gradients, state, params)
        >>> tp.train.apply_updates(params, updates)["w"].tolist()
        [0.0, 0.0]
        >>> v = tp.Variable([1.0, -2.0])
        >>> float(optimizer.minimize(lambda: tp.sum(tp.square(v)), [v])), v.tolist()
        (5.0, [0.0, 0.0])

    """

    _held = cached_property(lambda _self: _Held())

    @abstractmethod
    def init(self, params: Any) -> dict[str, Any]:
        """Return the state before the first step.

        ``params``: a tree of tensors (or variables) of floating or complex dtypes.

        Raises:
            ArgumentError: a leaf is not a tensor.
            DTypeError: a leaf is of integers, booleans or text.

        """

    @abstractmethod
    def update(
        self,
        gradients: T,
        state: Mapping[str, Any],
        params: Any = None,
        *,
        value: Tensor | None = None,
        value_fn: Callable[[Any], Tensor] | None = None,
    ) -> tuple[T, dict[str, Any]]:
        """Return what to add to the parameters, and the new state.

        Args:
            gradients: a tree like the parameters, such as ``grad`` returns.
            state: what ``init`` or the last ``update`` returned.
            params: the parameters, which weight decay and some rules need.
            value: the loss at ``params``. Only ``lbfgs`` reads it, and ``value_fn``.
            value_fn: a function of parameters that returns the loss.

        Returns:
            ``(updates, state)``; ``apply_updates(params, updates)`` takes the step.

        Raises:
            ArgumentError: the trees differ in structure, a leaf is not a tensor, the state
                belongs to another optimizer, or the rule needs more arguments.
            ShapeError, DTypeError: a leaf of the state does not fit the gradient.

        """

    def step(
        self,
        gradients: Any,
        state: Mapping[str, Any],
        params: T,
        *,
        value: Tensor | None = None,
        value_fn: Callable[[Any], Tensor] | None = None,
    ) -> tuple[T, dict[str, Any]]:
        """Return the new parameters and the new state: ``update`` and ``apply_updates`` in one.

        Where a backend has the whole step as a kernel, this takes one pass over memory.

        Args and errors: see ``update``; ``params`` is the tree of parameters.
        """
        updates, after = self.update(gradients, state, params, value=value, value_fn=value_fn)
        return apply_updates(params, updates), after

    def scale(self, loss: Tensor, state: Mapping[str, Any]) -> Tensor:  # noqa: ARG002
        """Return the loss whose gradients ``step`` and ``update`` take.

        It is the loss itself, except in a ``LossScaled``.
        """
        return loss

    def rate(self, state: Mapping[str, Any]) -> float | Tensor | None:  # noqa: ARG002
        """Return the learning rate of the next step, a tensor of rank 0 or a number.

        None for a rule that searches for the length of each step, as ``lbfgs`` does.
        """
        return None

    # Variables ----------------------------------------------------------------------------

    def minimize(self, f: Callable[[], R], var_list: Any = None, *, has_aux: bool = False) -> R:
        """Take one step to decrease ``f()``; return the value of ``f`` before the step.

        Args and errors: see ``variable_grads``, and ``apply_gradients``.
        """
        state = tree.tree_map(compiled_state.Slot.get, self._slots([]))

        def scaled() -> Any:
            result: Any = f()
            if has_aux and not (isinstance(result, tuple) and len(result) == 2):
                return result  # an error, which says what ``f`` must return
            loss = result[0] if has_aux else result
            return (self.scale(loss, state) if isinstance(loss, Tensor) else loss), result

        found = tp.variable_grads(scaled, var_list, has_aux=True)
        self.apply_gradients(found.grads)
        result: R = found.value[1]
        return result

    def apply_gradients(
        self, grads: Mapping[str, Any] | Iterable[tuple[Variable | str, Any]]
    ) -> None:
        """Take one step. If it raises, no variable has changed.

        ``grads``: gradients as ``step`` takes them, by the variables' names, or pairs of a
        variable (or its name) and a gradient with its shape and dtype; those that are None are
        left out.

        Raises:
            ArgumentError: a variable does not exist, or has two gradients. Also the errors of
                ``step``.
            ShapeError, DTypeError: a gradient does not have the type of its variable.

        """
        pairs = _matched(grads.items() if isinstance(grads, Mapping) else grads)
        slots, build = tree.flatten(self._slots([variable for variable, _ in pairs]))
        params, state = self.step(
            {variable.name: gradient for variable, gradient in pairs},
            build([slot.get() for slot in slots]),
            {variable.name: variable.read() for variable, _ in pairs},
        )
        for variable, _ in pairs:
            variable.assign(params[variable.name])
        for slot, after in zip(slots, tree.flatten(state)[0], strict=True):
            slot.set(after)
        known = self._held.known

        def check() -> None:
            if self._held.known is not known:
                raise CompileError(
                    f"compile: {self!r} got another state since the function was traced; compile "
                    "the function again"
                )

        compiled_state.check_each_run(check)

    @property
    def state(self) -> dict[str, Any]:
        """The state of the variables, which can be set: a tree that ``save`` accepts.

        It is what ``init`` returns for a dict of the variables by name, after the steps so far.
        Setting it raises ``ArgumentError`` if it is the state of another optimizer.
        """
        self._slots([])
        return {**tree.tree_map(compiled_state.Slot.read, self._held.slots)}

    @state.setter
    def state(self, given: Mapping[str, Any]) -> None:
        names: dict[str, Any] = {}
        _check_state(self, self.init({}), given, "state", names)
        if len({frozenset(found) for found in names.values()}) > 1:
            raise ArgumentError(f"{self!r}: the variables differ: {names}")
        before = self._held.by_path()
        self._held.slots = self._held.placed(given)
        tree.tree_map(compiled_state.Slot.assign, self._held.slots, given)
        after = self._held.by_path()
        if any(after.get(path) is not slot for path, slot in before.items()):
            self._held.known = {}  # programs that know the old slots cannot go on

    def _slots(self, variables: list[Variable]) -> Any:
        """Return the state of these variables as a tree of slots; that of new ones begins."""
        held = self._held
        key = tuple((variable.name, variable.type) for variable in variables)
        if key not in held.known:
            with compiled_state.outside_tracing():
                start = self.init({variable.name: variable for variable in variables})
                held.known[key] = held.placed(start)
            held.slots = _merged(held.slots, held.known[key])
        return held.known[key]


class _Held:
    """The state of variables, between the steps of an optimizer."""

    def __init__(self) -> None:
        self.slots: Any = {}  # a tree of slots like the state
        self.known: dict[Any, Any] = {}  # the part of it for some variables, by names and types

    def by_path(self) -> dict[str, compiled_state.Slot]:
        """Return the slots by their paths."""
        return dict(zip(tree.paths(self.slots), tree.flatten(self.slots)[0], strict=True))

    def placed(self, state: Any) -> Any:
        """Return a tree of slots like a state; those of other paths and types are new."""
        before, (values, build) = self.by_path(), tree.flatten(state)
        slots = []
        for path, value in zip(tree.paths(state), values, strict=True):
            fits = path in before and before[path].type == value.type
            slots.append(before[path] if fits else compiled_state.Slot(value, path))
        return build(slots)


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


def named_leaves(what: str, given: Any) -> list[tuple[str, Tensor]]:
    """Return the path and the value of each leaf of a tree, which is called ``what``.

    Raises:
        ArgumentError, DTypeError: a leaf is not a tensor of floating or complex numbers.

    """
    found = []
    for where, leaf in zip(tree.paths(given), tree.flatten(given)[0], strict=True):
        if not isinstance(leaf, Tensor):
            raise ArgumentError(f"{what}{where} must be a tensor, got {arguments.quoted(leaf)}")
        if leaf.dtype not in dt.INEXACT:
            raise DTypeError(
                f"{what}{where} is {leaf.type}, but must be of floating or complex numbers"
            )
        found.append((where, leaf.read() if isinstance(leaf, Variable) else leaf))
    return found


def choose(condition: Tensor, chosen: T, other: T) -> T:
    """Return one of two trees of the same structure; a bool of rank 0 says which."""
    found: T = tree.tree_map(lambda one, two: tp.where(condition, one, two), chosen, other)
    return found


def _matched(
    pairs: Iterable[tuple[Variable | str, Any]],
) -> list[tuple[Variable, Tensor]]:
    """Return each variable that has a gradient, with the gradient.

    Errors: see ``apply_gradients``.
    """
    seen: set[str] = set()
    found = []
    for who, given in pairs:
        variable = who if isinstance(who, Variable) else compiled_state.find_variable(who)
        if variable is None:
            raise ArgumentError(f"apply_gradients: there is no variable {who!r}")
        if variable.name in seen:
            raise ArgumentError(f"apply_gradients: {variable.name!r} has two gradients")
        seen.add(variable.name)
        if given is None:
            continue
        g = as_tensor(given, what=f"apply_gradients: gradient of {variable.name!r}")
        if g.shape != variable.shape or g.dtype is not variable.dtype:
            kind = ShapeError if g.shape != variable.shape else DTypeError
            raise kind(
                f"apply_gradients: the gradient of {variable.name!r} is {g.type}, the variable "
                f"{variable.type}"
            )
        found.append((variable, g))
    return found


def _merged(old: Any, new: Any) -> Any:
    """Return nested dicts with the entries of both."""
    if not isinstance(old, Mapping):
        return new
    return {**old, **{key: _merged(old.get(key), item) for key, item in new.items()}}


def _check_state(who: object, like: Any, given: Any, where: str, names: dict[str, Any]) -> None:
    """Check a state of variables beside that of none; collect the variables' names by place."""
    if isinstance(like, Mapping):
        if not isinstance(given, Mapping) or (like and set(given) != set(like)):
            got = sorted(given) if isinstance(given, Mapping) else arguments.quoted(given)
            raise ArgumentError(f"{who!r}: {where} needs {sorted(like)}, got {got}")
        if not like:
            names[where] = sorted(given)
        for key, item in like.items():
            _check_state(who, item, given[key], f"{where}[{key!r}]", names)
    elif not isinstance(given, Tensor) or given.type != like.type:
        found = given.type if isinstance(given, Tensor) else arguments.quoted(given)
        raise ArgumentError(f"{who!r}: {where} must be {like.type}, got {found}")
