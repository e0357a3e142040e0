"""Training inside of a model: optimizers' steps and gradients, of ai.onnx.preview.training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug_onnx.graph import ValueInfo
from tensorplug_onnx.loading import graphs_in
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_onnx.executing import Scope
    from tensorplug_onnx.graph import Graph, Node

_DOMAIN: Final = "ai.onnx.preview.training"


def _of_each(
    update: Callable[..., tuple[Any, ...]], tensors: Sequence[Any], roles: int
) -> tuple[Any, ...]:
    """Return the updated tensors and states: all of the first role, then all of the next.

    Args:
        update: from a tensor, its gradient and its states to the next tensor and states.
        tensors: the tensors, then their gradients, then their first states, ...
        roles: of how many kinds they are.

    """
    count = len(tensors) // roles
    if count * roles != len(tensors):
        raise ValueError(f"{len(tensors)} inputs are not {roles} for each tensor")
    groups = [tensors[at * count : (at + 1) * count] for at in range(roles)]
    updated = []
    for x, gradient, *states in zip(*groups, strict=True):
        following = update(x, gradient, *states)
        updated.append([tp.astype(one, x.dtype) for one in following])
    return tuple(one for role in zip(*updated, strict=True) for one in role)


@rule("Adagrad", domain=_DOMAIN)
def adagrad(
    rate: Any,
    step: Any,
    *tensors: Any,
    decay_factor: float = 0.0,
    epsilon: float = 9.999999974752427e-07,
    norm_coefficient: float = 0.0,
) -> tuple[Any, ...]:
    decayed = rate / (1 + tp.astype(step, rate.dtype) * decay_factor)

    def update(x: Any, gradient: Any, squares: Any) -> tuple[Any, ...]:
        gradient = norm_coefficient * x + gradient
        squares = squares + gradient * gradient
        return x - decayed * gradient / (tp.sqrt(squares) + epsilon), squares

    return _of_each(update, tensors, 3)


@rule("Adam", domain=_DOMAIN)
def adam(
    rate: Any,
    step: Any,
    *tensors: Any,
    alpha: float = 0.8999999761581421,
    beta: float = 0.9990000128746033,
    epsilon: float = 9.999999974752427e-07,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Any, ...]:
    count = tp.astype(step, rate.dtype)
    first = step <= 0
    # 1 - beta ** step loses half of its digits in float32; this does not.
    of_squares = tp.where(first, 1, -tp.expm1(count * _log(beta, rate)))
    of_means = tp.where(first, 1, -tp.expm1(count * _log(alpha, rate)))
    adjusted = rate * tp.sqrt(of_squares) / of_means

    def update(x: Any, gradient: Any, mean: Any, squares: Any) -> tuple[Any, ...]:
        gradient = norm_coefficient * x + gradient
        mean = alpha * mean + (1 - alpha) * gradient
        squares = beta * squares + (1 - beta) * gradient * gradient
        following = x - adjusted * mean / (tp.sqrt(squares) + epsilon)
        return (1 - norm_coefficient_post) * following, mean, squares

    return _of_each(update, tensors, 4)


def _log(factor: float, like: Any) -> Any:
    return tp.log(tp.asarray(factor, dtype=like.dtype))


@rule("Momentum", domain=_DOMAIN)
def momentum(
    rate: Any,
    step: Any,
    *tensors: Any,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> tuple[Any, ...]:
    if mode not in ("standard", "nesterov"):
        raise ValueError(f"attribute 'mode' is {mode!r}, must be 'standard' or 'nesterov'")
    share = tp.where(step > 0, tp.asarray(beta, dtype=rate.dtype), 1)

    def update(x: Any, gradient: Any, velocity: Any) -> tuple[Any, ...]:
        gradient = norm_coefficient * x + gradient
        velocity = alpha * velocity + share * gradient
        change = velocity if mode == "standard" else gradient + alpha * velocity
        return x - rate * change, velocity

    return _of_each(update, tensors, 3)


@rule("Gradient", domain=_DOMAIN)
def gradient(
    *inputs: Any, xs: Sequence[str], y: str, zs: Sequence[str] = (), scope: Scope
) -> tuple[Any, ...]:
    """Run the part of the graph between the inputs and y once more, now with gradients."""
    if len(inputs) != len(xs) + len(zs):
        raise ValueError(f"{len(inputs)} inputs, attributes name {len(xs)} and {len(zs)}")
    assert scope.graph is not None
    part = _part(scope.graph, [*xs, *zs], y)
    constants: dict[str, Any] = {name: scope.values[name] for name in part.initializers}
    part = replace(part, initializers=constants)  # the parameters of this call
    own = replace(scope, plans=type(scope.plans)())  # the part is of this call alone
    fixed = inputs[len(xs) :]

    def total(*variables: Any) -> Any:
        (found,) = own.run(part, [*variables, *fixed])
        return tp.sum(as_tensor(found))

    variables = tuple(range(len(xs)))
    return tuple(tp.grad(total, variables, unconnected="zeros")(*inputs[: len(xs)]))


def _part(graph: Graph, given: Sequence[str], y: str) -> Graph:
    """Return the nodes and initializers that y needs, and what is given does not replace."""
    nodes: list[Node] = []
    needed = {y}.difference(given)
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            nodes.append(node)
            needed |= {name for name in node.inputs if name}.difference(given)
            for inner in graphs_in(node.attributes):
                needed |= inner.free.difference(given)
            if (node.op_type, node.domain) == ("Gradient", _DOMAIN):
                needed |= {node.attributes["y"]}.difference(given)
    made = {name for node in nodes for name in node.outputs}
    initializers = {name: value for name, value in graph.initializers.items() if name in needed}
    lacking = needed - made - initializers.keys()
    if lacking:
        raise ValueError(f"{y!r} depends on {min(lacking)!r}, which is not in 'xs' or 'zs'")
    return replace(
        graph,
        inputs=tuple(map(ValueInfo, given)),
        outputs=(ValueInfo(y),),
        nodes=tuple(reversed(nodes)),
        initializers=initializers,
        free=frozenset(),
    )
