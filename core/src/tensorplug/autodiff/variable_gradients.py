"""Gradients with respect to variables, which a function takes from around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.autodiff.backpropagation import backpropagate
from tensorplug.autodiff.complex_numbers import check_real_loss, conjugated
from tensorplug.autodiff.tape import Leaf, handle
from tensorplug.autodiff.tracing import Traced, check_function, detached, no_tensor
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError, ShapeError
from tensorplug.ops import creation
from tensorplug.tensors import tree
from tensorplug.tensors.variable import Variable, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["VariableGrads", "variable_grads"]


class VariableGrads(NamedTuple):
    """A function's value, and its gradients by the names of the variables."""

    value: Any
    grads: dict[str, Tensor | None]


def variable_grads(
    f: Callable[[], Any], var_list: Any = None, *, has_aux: bool = False
) -> VariableGrads:
    """Call ``f`` and return its value and its gradients with respect to variables.

    The gradients are those at the contents that the variables have at the start: that is what
    ``f`` reads throughout, also while another thread assigns. ``f`` itself can assign to other
    variables only.

    Args:
        f: takes nothing and returns a floating scalar.
        var_list: a list of variables, or a tree of them, such as a model. By default all
            trainable floating and complex variables of the current engine, the oldest first.
        has_aux: ``f`` returns ``(y, aux)``; aux is handed on and not differentiated.

    Returns:
        ``(value, grads)``: the value is y, or ``(y, aux)``. The gradients, of the shapes and
        dtypes of the variables, stand under their names. Variables from which no path leads to
        y are left out; those of ``var_list`` that are not trainable have None. For a complex
        variable x + iy the gradient is dL/dx + i dL/dy, as ``grad`` gives it.

    Raises:
        ArgumentError: ``f`` is no function or returns no tensor, none of the variables is
            trainable, or ``var_list`` holds something else, or two of one name.
        ShapeError: y is no scalar.
        DTypeError: a trainable variable of ``var_list`` is neither floating nor complex, or y is
            complex.
        DisposedError: a variable of ``var_list`` was disposed.
        NotConnectedError: no path leads from y to any of the variables.
        GradientError: ``f`` assigns to one of the variables.

    """
    check_function(f, "variable_grads")
    chosen = _all_trainable() if var_list is None else _checked(var_list)
    leaves: dict[int, Leaf] = {}
    watched = {}
    for item in chosen:
        if item.trainable:
            seen = item._reading()
            leaf = leaves[id(item)] = Leaf((seen._node,))
            watched[id(item)] = (item, Tensor._of(seen._buffer, seen._placement, leaf))
    traced = Traced.of(f, (), {}, (), has_aux=has_aux, watched=watched)
    y = _scalar(traced.y)
    value = detached(y)
    found = backpropagate([(y._node, creation.ones_like(value))], list(leaves.values()))
    if not found:
        raise _not_connected(y, chosen)
    grads: dict[str, Tensor | None] = {}
    for item in chosen:
        if id(item) not in leaves:
            grads[item.name] = None
            continue
        gradient = found.get(leaves[id(item)])
        if gradient is not None:
            # One tensor may serve two variables; who disposes of one must not lose the other.
            gradient = conjugated(gradient)
            grads[item.name] = handle(gradient, gradient._node)
    return VariableGrads((value, traced.aux) if has_aux else value, grads)


def _all_trainable() -> list[Variable]:
    every = variables_of(engine_of(current_context())).listed()
    chosen = [item for item in every if item.trainable and item.dtype in dt.INEXACT]
    if not every:
        raise ArgumentError(
            "variable_grads: this engine has no variables; one lives while something refers to it"
        )
    if not chosen:
        raise ArgumentError(
            f"variable_grads: none of the variables of this engine ({_names(every)}) is trainable "
            "and floating or complex"
        )
    return chosen


def _checked(var_list: Any) -> list[Variable]:
    """Return the variables of a tree, each once.

    Raises: see ``variable_grads``.
    """
    chosen: dict[int, Variable] = {}
    names: set[str] = set()
    for leaf in tree.leaves(var_list):
        if not isinstance(leaf, Variable):
            raise ArgumentError(
                "variable_grads: var_list must be a list of variables, or a tree of them, but "
                f"holds {type(leaf).__name__}"
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
                f"variable_grads: var_list holds two variables called {leaf.name!r}, of two "
                "engines, but gradients are given by name"
            )
        chosen[id(leaf)] = leaf
        names.add(leaf.name)
    if not any(item.trainable for item in chosen.values()):
        listed = _names(list(chosen.values()))
        raise ArgumentError(f"variable_grads: none of var_list ({listed}) is trainable")
    return list(chosen.values())


def _names(variables: Sequence[Variable]) -> str:
    shown = [repr(variable.name) for variable in variables[:5]]
    more = [f"{len(variables) - 5} more"] if len(variables) > 5 else []
    return ", ".join(shown + more) or "empty"


def _scalar(y: Any) -> Tensor:
    if not isinstance(y, Tensor):
        raise no_tensor(y)
    if y.shape:
        raise ShapeError(
            f"variable_grads: f must return a scalar, got {y.type}; take its sum or its mean"
        )
    check_real_loss(y, "variable_grads")
    return y


def _not_connected(y: Tensor, chosen: Sequence[Variable]) -> NotConnectedError:
    trainable = [item for item in chosen if item.trainable]
    return NotConnectedError(
        f"variable_grads: no differentiable path leads from the result ({y.type}) back to any of "
        f"the variables ({_names(trainable)}); does f use them itself, and not only tensors read "
        "from them before, nor only through comparisons, indices or stop_gradient?"
    )
