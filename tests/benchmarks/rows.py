"""Rows of benchmarks: one computation in several libraries, with the arrays that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from harness import Workload
from peers import available, backends, compiling, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Call = Callable[[], object]
    Function = Callable[..., Any]


PEERS: Final = ("numpy", "torch", "jax jit")


@dataclass(frozen=True)
class Row:
    """One computation in several libraries.

    ``ours`` gets tensors, ``numpy`` arrays, ``torch`` and ``jax`` the module and its arrays.
    ``wrt``: the number of arguments to differentiate the sum of the result by; 0 for none.
    ``for_torch``: turns an array to PyTorch's layout, channels first.
    """

    name: str
    arrays: Callable[[], Sequence[Any]]
    ours: Function
    numpy: Function | None = None
    torch: Function | None = None
    jax: Function | None = None
    wrt: int = 0
    for_torch: Function | None = None

    def workload(self) -> Workload:
        arrays = self.arrays()
        contenders: dict[str, Call] = {}
        for backend in backends():
            contenders[f"tensorplug {backend}"] = on(backend, lambda: self._ours(arrays))
        for backend in compiling():
            contenders[f"tensorplug {backend} compiled"] = on(
                backend, lambda: self._ours(arrays, compiled=True)
            )
        if self.numpy is not None:
            contenders["numpy"] = lambda f=self.numpy: f(*arrays)
        if self.torch is not None and available("torch"):
            contenders["torch"] = self._torch(self.torch, arrays)
        if self.jax is not None and available("jax"):
            contenders["jax jit"] = self._jax(self.jax, arrays)
        baseline = next((name for name in PEERS if name in contenders), next(iter(contenders)))
        return Workload(self.name, baseline, contenders)

    def _ours(self, arrays: Sequence[Any], *, compiled: bool = False) -> Call:
        function = self.ours
        if self.wrt:
            function = tp.grad(lambda *given: tp.sum(self.ours(*given)), tuple(range(self.wrt)))
        if compiled:
            function = tp.compile(function)
        tensors = [tp.asarray(array) for array in arrays]
        return lambda: function(*tensors)

    def _torch(self, function: Function, arrays: Sequence[Any]) -> Call:
        import torch

        turn = self.for_torch or (lambda array: array)
        tensors = [torch_tensor(turn(array)) for array in arrays]
        if not self.wrt:
            return lambda: function(torch, *tensors)
        leaves = tensors[: self.wrt]
        for leaf in leaves:
            leaf.requires_grad_()
        return lambda: torch.autograd.grad(function(torch, *tensors).sum(), leaves)

    def _jax(self, function: Function, arrays: Sequence[Any]) -> Call:
        import jax

        def call(*given: Any) -> Any:
            return function(jax, *given)

        if self.wrt:
            call = jax.grad(lambda *given: function(jax, *given).sum(), tuple(range(self.wrt)))
        fast = jax.jit(call)
        passed = [jax.numpy.asarray(array) for array in arrays]
        return lambda: jax.block_until_ready(fast(*passed))


def normal(*shapes: tuple[int, ...]) -> Callable[[], list[Any]]:
    def make() -> list[Any]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]

    return make


def numbered(table: tuple[int, int], count: int) -> Callable[[], list[Any]]:
    """Return the maker of a table of rows and of the numbers of some of them."""

    def make() -> list[Any]:
        rng = np.random.default_rng(0)
        rows = rng.integers(0, table[0], count, dtype=np.int32)
        return [rng.standard_normal(table, dtype=np.float32), rows]

    return make
