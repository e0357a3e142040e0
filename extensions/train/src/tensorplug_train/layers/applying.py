"""What layers have in common: how one is called, the state of a model, errors that name a layer.

A layer is a frozen dataclass and so a tree: its tensors are what is trained, its options are
static fields. What else a layer needs in a call, state and keys of random numbers, is an argument.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import as_tensor, tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug import Tensor
    from tensorplug.typing import ArrayLike, KeyLike


class LayerError(ShapeError):
    """A layer got a tensor of a wrong shape; ``layer``: that layer.

    The message begins with the path to the layer in the model that was called.

    Examples:
        >>> layers = tp.train.layers
        >>> model = layers.Sequential.of(tp.nn.relu, layers.Linear(tp.ones((64, 10))))
        >>> try:
        ...     model(tp.ones((32, 128)))
        ... except layers.LayerError as error:
        ...     print(error)
        Sequential[1]: Linear of 64 inputs got x of shape (32, 128)

    """

    def __init__(self, layer: Any, message: str) -> None:
        super().__init__(message)
        self.layer, self.problem = layer, message


def apply(
    model: Any,
    x: Any,
    state: Any = None,
    *,
    key: KeyLike | None = None,
    training: bool = False,
) -> tuple[Any, Any]:
    """Return what a layer or model computes from ``x``, and its new state.

    It calls ``model.apply(x, state, key=key, training=training)`` if the model has this method,
    otherwise ``model(x)``, which leaves the state as it is.

    Args:
        model: a layer, a model of layers, or a function.
        x: the input: a tensor, or a tree of tensors.
        state: what ``initial_state(model)`` or the last call returned; None without state.
        key: a key of ``tensorplug.random``, for layers with noise. Each call needs another one.
        training: whether to draw noise and to update the state.

    Raises:
        LayerError: x does not fit a layer; the message names the layer and its path.
        ArgumentError: a layer needs a key or its state; or, in training, the model contains such a
            layer, but has no method ``apply`` that could pass them on.

    Examples:
        >>> layers = tp.train.layers
        >>> model = layers.Sequential.of(layers.Linear.init(tp.random.key(0), 3, 2), tp.nn.relu)
        >>> y, state = layers.apply(model, tp.ones((5, 3)), training=True)
        >>> y.shape, state
        ((5, 2), None)

    """
    method = getattr(model, "apply", None)
    with located(model):
        if method is not None:
            y, state = method(x, state, key=key, training=training)
            return y, state
        if training:
            _check_plain(model)
        return model(x), state


def initial_state(model: Any) -> Any:
    """Return the states of all layers of a model before the first step, or None without any.

    It is what ``model.initial_state()`` returns, if there is such a method. Otherwise it is a dict
    with the states of those children of the tree that have one: by field or key, or by position as
    text (``"0"``, so that ``tp.save`` can name them).

    ``model``: a layer, or a tree with layers in it.

    Examples:
        >>> layers = tp.train.layers
        >>> linear = layers.Linear.init(tp.random.key(0), 3, 2)
        >>> layers.initial_state({"first": linear}) is None
        True

    """
    method = getattr(model, "initial_state", None)
    if method is not None:
        return method()
    states = {str(key): initial_state(child) for key, child in _children(model)}
    return {key: state for key, state in states.items() if state is not None} or None


@contextmanager
def located(model: Any) -> Iterator[None]:
    """Write the path from ``model`` into the message of a ``LayerError``; the outermost wins."""
    try:
        yield
    except LayerError as error:
        for path, node in nodes(model, type(model).__name__):
            if node is error.layer and node is not model:
                error.args = (f"{path}: {error.problem}",)
                break
        raise


def nodes(model: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Return the model and all containers in it, each with its path."""
    yield path, model
    for key, child in _children(model):
        yield from nodes(child, step(model, path, key))


def step(model: Any, path: str, key: Any) -> str:
    """Return the path to a child of the model at ``path``, as Python code."""
    named = isinstance(key, str) and key.isidentifier() and not isinstance(model, dict)
    return f"{path}.{key}" if named else f"{path}[{key!r}]"


def fitting(
    layer: Any, x: ArrayLike, width: int, what: str = "inputs", ranks: tuple[int, ...] = ()
) -> Tensor:
    """Return ``x`` as a tensor; another last axis or number of axes is a ``LayerError``."""
    name = type(layer).__name__
    tensor = as_tensor(x, what=f"{name}: x")
    if ranks and tensor.ndim not in ranks:
        axes = " or ".join(map(str, ranks))
        raise LayerError(layer, f"{name} needs x of {axes} axes, got shape {tensor.shape}")
    if not tensor.ndim or tensor.shape[-1] != width:
        raise LayerError(layer, f"{name} of {width} {what} got x of shape {tensor.shape}")
    return tensor


def _children(model: Any) -> list[tuple[Any, Any]]:
    opened = tree.level(model)
    return [] if opened is None else list(zip(opened[0], opened[1], strict=True))


def _check_plain(model: Any) -> None:
    """Raise an error if a layer in ``model`` has noise or state, but the model no ``apply``.

    ``plain`` is what layers say that have ``apply`` without needing it.
    """
    for path, node in nodes(model, type(model).__name__):
        if hasattr(node, "apply") and not getattr(node, "plain", False):
            raise ArgumentError(
                f"apply: {path} is a {type(node).__name__}, which has noise or state, but "
                f"{type(model).__name__} has no method apply(x, state, *, key, training), which "
                "training needs to pass them on"
            )
