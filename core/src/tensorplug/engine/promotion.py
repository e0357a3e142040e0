"""Casting the inputs of a call to the dtype they promote to, before its kernel runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.spec import TensorType
from tensorplug.ops.elementwise import CAST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context, EngineProtocol
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.registry import State

__all__ = ["Promotion"]


class Promotion:
    """What a key leads to when some of a call's inputs must be cast to a common dtype first."""

    __slots__ = ("dtype", "published", "spec", "state")

    def __init__(self, spec: KernelSpec, dtype: DType, state: State) -> None:
        self.spec = spec
        self.dtype = dtype
        self.state = state
        self.published = False

    def needed(self, types: Sequence[Any]) -> bool:
        """Return whether any of the promoted inputs has another dtype."""
        return self.promoted(types) != list(types)

    def promoted(self, types: Sequence[Any]) -> list[Any]:
        """Return the types that the inputs have after the casts."""
        return self._over(types, lambda item: TensorType(self.dtype, item.shape))

    def apply(self, engine: EngineProtocol, context: Context, tensors: Sequence[Any]) -> list[Any]:
        """Return the inputs with a Cast, on the tape as any other kernel, where one is due."""

        def cast(each: Tensor) -> Any:
            if each.dtype is self.dtype:
                return each
            return engine.run(context, CAST, (each,), {"dtype": self.dtype})

        return self._over(tensors, cast)

    def _over(self, given: Sequence[Any], change: Callable[[Any], Any]) -> list[Any]:
        """Return the inputs, or their types, with ``change`` made to the promoted ones."""

        def changed(each: Any) -> Any:
            if isinstance(each, list):
                return [change(one) for one in each]
            return None if each is None else change(each)

        return [
            changed(item) if name in self.spec.promote else item
            for name, item in zip(self.spec.input_names, given, strict=True)
        ]
