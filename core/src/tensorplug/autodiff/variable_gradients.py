"""Gradients with respect to variables that a function uses without taking them as arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from tensorplug.autodiff.backpropagation import backpropagate
from tensorplug.autodiff.complex_numbers import check_real_loss, conjugate
from tensorplug.autodiff.tape import Leaf, with_node
from tensorplug.autodiff.tracing import Traced, check_function, detach, not_a_scalar, not_a_tensor
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError
from tensorplug.ops import creation
from tensorplug.tensors import tree
from tensorplug.tensors.variable import Variable, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


R = TypeVar("R")


class VariableGrads(NamedTuple, Generic[R]):
    """A function's value, and its gradients by variable name."""

    value: R
    grads: dict[str, Tensor | None]


def variable_grads(
    f: Callable[[], R], var_list: Any = None, *, has_aux: bool = False
) -> VariableGrads[R]:
    """Call ``f`` and return its value and its gradients with respect to variables.

    ``f`` reads the contents that the variables have at the start, even if another thread assigns
    to them. ``f`` itself must not assign to them.

    Args:
        f: takes no arguments and returns a floating scalar.
        var_list: a list of variables, or a tree of them, such as a model. By default all
            trainable floating and complex variables of the current engine, the oldest first.
        has_aux: ``f`` returns ``(y, aux)``; aux is returned without being differentiated.

    Returns:
        ``(value, grads)``: the value is y, or ``(y, aux)``. ``grads`` maps names to gradients
        with the shapes and dtypes of the variables. It omits variables on which y does not
        depend; variables of ``var_list`` that are not trainable have None. The gradient for a
        complex variable x + iy is dL/dx + i dL/dy, as in ``grad``.

    Raises:
        ArgumentError: ``f`` is not a function or does not return a tensor; none of the variables
            is trainable; ``var_list`` contains other objects, or two variables with one name.
        ShapeError: y is not a scalar.
        DTypeError: a trainable variable of ``var_list`` is neither floating nor complex, or y is
            complex.
        DisposedError: a variable of ``var_list`` was disposed.
        NotConnectedError: no path leads from y to any of the variables.
        GradientError: ``f`` assigns to one of the variables.

    Examples:
        >>> w, b = tp.Variable([1.0, 2.0]), tp.Variable(0.5)
        >>> value, grads = tp.variable_grads(lambda: tp.sum(w**2) + 3 * b, [w, b])
        >>> float(value), grads[w.name].tolist(), grads[b.name].tolist()
        (6.5, [2.0, 4.0], 3.0)

    """
    check_function(f, "variable_grads")
    chosen = _all_trainable() if var_list is None else _check_variables(var_list)
    leaves: dict[int, Leaf] = {}
    watched = {}
    for variable in chosen:
        if variable.trainable:
            read = variable._reading()
            leaf = leaves[id(variable)] = Leaf((read._node,))
            tensor = Tensor._of(read._buffer, read._placement, leaf)
            watched[id(variable)] = (variable, tensor)
    traced = Traced.of(f, (), {}, (), has_aux=has_aux, watched=watched)
    y = _scalar(traced.y)
    value = detach(y)
    cotangents = backpropagate([(y._node, creation.ones_like(value))], list(leaves.values()))
    if not cotangents:
        raise _not_connected(y, chosen)
    grads: dict[str, Tensor | None] = {}
    for variable in chosen:
        if id(variable) not in leaves:
            grads[variable.name] = None
            continue
        gradient = cotangents.get(leaves[id(variable)])
        if gradient is not None:
            # Not the tensor itself: another variable may have the same gradient.
            gradient = conjugate(gradient)
            grads[variable.name] = with_node(gradient, gradient._node)
    result: Any = (value, traced.aux) if has_aux else value
    return VariableGrads(result, grads)


def _all_trainable() -> list[Variable]:
    live = variables_of(engine_of(current_context())).listed()
    chosen = [variable for variable in live if variable.trainable and variable.dtype in dt.INEXACT]
    if not live:
        raise ArgumentError(
            "variable_grads: this engine has no live variables; keep a reference to each variable"
        )
    if not chosen:
        raise ArgumentError(
            f"variable_grads: none of the variables of this engine ({_names(live)}) is trainable "
            "and floating or complex"
        )
    return chosen


def _check_variables(var_list: Any) -> list[Variable]:
    """Return the variables of a tree without duplicates.

    Raises: see ``variable_grads``.
    """
    chosen: dict[int, Variable] = {}
    names: set[str] = set()
    for leaf in tree.leaves(var_list):
        if not isinstance(leaf, Variable):
            raise ArgumentError(
                "variable_grads: var_list must be a list of variables, or a tree of them, but "
                f"contains {type(leaf).__name__}"
            )
        if id(leaf) in chosen:
            continue
        leaf._live()
        if leaf.trainable and leaf.dtype not in dt.INEXACT:
            raise DTypeError(
                f"variable_grads: variable {leaf.name!r} is {leaf.type}; only floating and "
                "complex variables can be differentiated"
            )
        if leaf.name in names:
            raise ArgumentError(
                f"variable_grads: var_list contains two variables called {leaf.name!r}, of two "
                "engines, but gradients are returned by name"
            )
        chosen[id(leaf)] = leaf
        names.add(leaf.name)
    if not any(variable.trainable for variable in chosen.values()):
        listed = _names(list(chosen.values()))
        raise ArgumentError(f"variable_grads: none of var_list ({listed}) is trainable")
    return list(chosen.values())


def _names(variables: Sequence[Variable]) -> str:
    shown = [repr(variable.name) for variable in variables[:5]]
    more = [f"{len(variables) - 5} more"] if len(variables) > 5 else []
    return ", ".join(shown + more) or "empty"


def _scalar(y: Any) -> Tensor:
    if not isinstance(y, Tensor):
        raise not_a_tensor(y)
    if y.shape:
        raise not_a_scalar("variable_grads", y)
    check_real_loss(y, "variable_grads")
    return y


def _not_connected(y: Tensor, chosen: Sequence[Variable]) -> NotConnectedError:
    trainable = [variable for variable in chosen if variable.trainable]
    return NotConnectedError(
        f"variable_grads: no differentiable path leads from the result ({y.type}) back to any of "
        f"the variables ({_names(trainable)}). f must use them itself, not tensors read from them "
        "before, and not only through comparisons, indices or stop_gradient"
    )
