"""Casting the inputs of a call to a common dtype before its kernel runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.ops.elementwise.casting import CAST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.fallback import Resolver
    from tensorplug.engine.registry import State


def is_needed(spec: KernelSpec, names: Sequence[str], types: Sequence[Any], dtype: DType) -> bool:
    """Return whether any of the inputs called ``names`` has another dtype than ``dtype``."""
    for name, type_ in zip(spec.input_names, types, strict=True):
        if name in names and type_ is not None:
            for member in type_ if isinstance(type_, list) else (type_,):
                if member.dtype is not dtype:
                    return True
    return False


class Promotion:
    """Cached under a call's key if its inputs must be cast to a common dtype first.

    ``names``: of these inputs; by default those that the spec promotes.
    """

    __slots__ = ("dtype", "names", "published", "spec", "state")

    def __init__(
        self, spec: KernelSpec, dtype: DType, state: State, names: Sequence[str] | None = None
    ) -> None:
        self.spec: KernelSpec = spec
        self.names: tuple[str, ...] | Sequence[str] = spec.promote if names is None else names
        self.dtype: DType = dtype
        self.state: State = state
        self.published: bool = False

    def needed(self, types: Sequence[Any]) -> bool:
        """Return whether any of the promoted inputs has another dtype."""
        return is_needed(self.spec, self.names, types, self.dtype)

    def promoted(self, types: Sequence[Any]) -> list[Any]:
        """Return the types of the inputs after the casts."""
        return self._map(types, lambda type_: TensorType(self.dtype, type_.shape))

    def apply(self, engine: Resolver, context: Context, tensors: Sequence[Any]) -> list[Any]:
        """Cast the inputs with the kernel Cast, which the tape records, if necessary."""

        def cast(tensor: Tensor) -> Any:
            if tensor.dtype is self.dtype:
                return tensor
            return engine.run(context, CAST, (tensor,), {"dtype": self.dtype})

        return self._map(tensors, cast)

    def run(self, tensors: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Cast the inputs and call the kernel in the current context, by the fast path."""

        def cast(tensor: Tensor) -> Tensor:
            same = tensor._placement.type.dtype is self.dtype
            return tensor if same else dispatch(CAST, tensor, dtype=self.dtype)

        call = dispatch_multiple if self.spec.multiple_outputs else dispatch
        return call(self.spec, *self._map(tensors, cast), **attributes)

    def _map(self, operands: Sequence[Any], function: Callable[[Any], Any]) -> list[Any]:
        """Apply ``function`` to the promoted inputs, or their types; return all."""
        return [
            operand
            if operand is None or name not in self.names
            else [function(member) for member in operand]
            if isinstance(operand, list)
            else function(operand)
            for name, operand in zip(self.spec.input_names, operands, strict=True)
        ]
