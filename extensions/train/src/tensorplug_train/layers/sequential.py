"""A model of layers that follow one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.plugin import arguments, tree
from tensorplug_train.layers.applying import apply, located

if TYPE_CHECKING:
    from typing import Self

    from tensorplug.typing import KeyLike


@dataclass(frozen=True, eq=False)
class Sequential:
    """Layers of which each takes the output of the one before.

    In the tree of the model, functions such as ``tp.nn.relu`` are static data: compiled functions
    have a program for each. So name a function once, rather than write ``lambda`` where the model
    is made again and again.

    ``layers``: layers, models and functions of one tensor.

    Examples:
        >>> layers = tp.train.layers
        >>> a, b = tp.random.split(tp.random.key(0))
        >>> model = layers.Sequential.of(
        ...     layers.Linear.init(a, 3, 8), tp.nn.relu, layers.Linear.init(b, 8, 2)
        ... )
        >>> model(tp.ones((5, 3))).shape
        (5, 2)

    """

    layers: tuple[Any, ...]
    plain: ClassVar = True  # what its layers need, they say themselves

    @classmethod
    def of(cls, *layers: Any) -> Self:
        """Return the model of these layers.

        ``layers``: layers, models and functions of one tensor.

        Raises:
            ArgumentError: one of them can neither be called nor applied.

        """
        for at, layer in enumerate(layers):
            if not callable(layer) and not hasattr(layer, "apply"):
                raise ArgumentError(
                    f"Sequential[{at}] must be a layer or a function, got "
                    f"{arguments.quoted(layer)}"
                )
        return cls(layers)

    def __call__(self, x: Any, state: Any = None) -> Any:
        """Return the output of the last layer, without noise; ``state``: see ``apply``."""
        return self.apply(x, state)[0]

    def apply(
        self, x: Any, state: Any = None, *, key: KeyLike | None = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Return the output of the last layer, and the new state; see ``layers.apply``."""
        states = dict(state or {})
        with located(self):
            for at, layer in enumerate(self.layers):
                folds = key is not None and hasattr(layer, "apply")
                own = tp.random.fold_in(key, at) if folds and key is not None else None
                before = states.get(str(at))
                x, after = apply(layer, x, before, key=own, training=training)
                if after is not None:
                    states[str(at)] = after
        return x, states or None


def is_function(layer: Any) -> bool:
    """Return whether a part of a model is a function, which has no tree."""
    return callable(layer) and tree.level(layer) is None


def _flatten(model: Sequential) -> tuple[list[Any], tuple[Any, ...]]:
    functions = tuple([layer if is_function(layer) else None for layer in model.layers])
    pairs = zip(functions, model.layers, strict=True)
    return [layer if given is None else None for given, layer in pairs], functions


def _unflatten(functions: tuple[Any, ...], children: Any) -> Sequential:
    pairs = zip(functions, children, strict=True)
    return Sequential(tuple(child if given is None else given for given, child in pairs))


tp.register_tree(Sequential, flatten=_flatten, unflatten=_unflatten)
