"""Casting the inputs of a call to the dtype they promote to, before its kernel runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops.elementwise import CAST
from tensorplug.spec import TensorType
from tensorplug.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch import Frame, Runner
    from tensorplug.dtypes import DType
    from tensorplug.registry import State
    from tensorplug.spec import KernelSpec

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
        return any(
            each is not None and any(one.dtype is not self.dtype for one in _listed(each))
            for name, each in zip(self.spec.input_names, types, strict=True)
            if name in self.spec.promote
        )

    def promoted(self, types: Sequence[Any]) -> list[Any]:
        """Return the types that the inputs have after the casts."""

        def cast(given: Any) -> Any:
            if isinstance(given, list):
                return [cast(each) for each in given]
            return None if given is None else TensorType(self.dtype, given.shape)

        return [
            cast(each) if name in self.spec.promote else each
            for name, each in zip(self.spec.input_names, types, strict=True)
        ]

    def apply(self, engine: Runner, frame: Frame, tensors: Sequence[Any]) -> list[Any]:
        """Return the inputs with a Cast, on the tape as any other kernel, where one is due."""

        def cast(given: Any) -> Any:
            if given is None or (isinstance(given, Tensor) and given.dtype is self.dtype):
                return given
            if isinstance(given, list):
                return [cast(each) for each in given]
            return engine.run(frame, CAST, (given,), {"dtype": self.dtype})

        return [
            cast(each) if name in self.spec.promote else each
            for name, each in zip(self.spec.input_names, tensors, strict=True)
        ]


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]
