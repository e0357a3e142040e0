"""Functions of logical tensors as functions of the physical ones (``engine.interpreters``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.dispatch.context import current_context, use_context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.interpreters import Interpreter


class Lifted:
    """A function of logical tensors as one of the physical tensors that carry them.

    Functions with a meaning of their own, such as checkpoints and loops, are *lifted*: inside an
    interpreter they are called outside, on the physical tensors (``Interpreter.lower``), and with
    such a function in the place of the user's. It may be called at any time, in any context:
    also by a backward pass after the call of the interpreter has ended.

    Args:
        interpreter: of the logical tensors.
        function: takes logical tensors and returns a list of them.
        types: of the logical arguments.
        call: of the interpreter, whose logical tensors the function may use.

    ``results``: the types of the logical results of the last call, for ``Interpreter.lift``.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        function: Callable[..., Sequence[Tensor]],
        types: Sequence[TensorType],
        call: object,
    ) -> None:
        self.interpreter = interpreter
        self.call = call
        self.function = function
        self.types = types
        self.results: list[TensorType] = []
        self.autocast: DType | None = current_context().autocast

    def __call__(self, *physical: Tensor) -> list[Tensor]:
        """Call the function; return the physical tensors that carry its results."""
        interpreter = self.interpreter
        arguments = interpreter.lift(physical, self.types, self.call)
        outside = current_context().replace(autocast=self.autocast)
        with use_context(interpreter.context(outside, self.call)):
            results = self.function(*arguments)
            interpreter.check_call(results, self.call)
        self.results = [result.type for result in results]
        return interpreter.lower(results)
