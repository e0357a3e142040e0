"""Workloads of derivatives of functions of vectors: Jacobians, a Hessian, one direction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, compiling, on

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

INPUTS, HIDDEN, OUTPUTS = 50, 200, 100


def _arrays() -> list[Any]:
    """Return two matrices of weights, a point and a direction."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal((INPUTS, HIDDEN)) / math.sqrt(INPUTS)
    second = rng.standard_normal((HIDDEN, OUTPUTS)) / math.sqrt(HIDDEN)
    vectors = rng.standard_normal((2, INPUTS))
    return [np.asarray(array, np.float32) for array in (first, second, *vectors)]


def _network(library: Any, first: Any, second: Any) -> Callable[[Any], Any]:
    """Return a function of one vector with 100 results: the same for each library."""
    return lambda x: library.tanh(library.tanh(x @ first) @ second)


def _workload(name: str, derive: Callable[[Any, Any], Any]) -> Workload:
    """``derive`` takes a library and the network, and returns a function of x and a direction."""
    arrays = _arrays()

    def ours(*, compiled: bool) -> Call:
        first, second, x, along = map(tp.asarray, arrays)
        run = derive(tp, _network(tp, first, second))
        fast = tp.compile(run) if compiled else run
        return lambda: fast(x, along)

    contenders: dict[str, Call] = {"tensorplug cpu": on("cpu", lambda: ours(compiled=False))}
    contenders |= {
        f"tensorplug {name} compiled": on(name, lambda: ours(compiled=True))
        for name in compiling()
    }
    if available("jax"):
        import jax

        first, second, x, along = map(jax.numpy.asarray, arrays)
        fast = jax.jit(derive(jax, _network(jax.numpy, first, second)))
        contenders["jax jit"] = lambda: jax.block_until_ready(fast(x, along))
    return Workload(name, "jax jit" if available("jax") else "tensorplug cpu compiled", contenders)


def _summed(library: Any, f: Any) -> Any:
    """Return the sum of the squares of the results of ``f``."""
    numbers = tp if library is tp else library.numpy
    return lambda x: numbers.sum(f(x) ** 2)


ROWS: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
    ("jvp_network", "jvp of a network",
     lambda library, f: lambda x, along: library.jvp(f, (x,), (along,))),
    ("jacfwd_network", "jacobian 100 x 50, forward",
     lambda library, f: lambda x, _: library.jacfwd(f)(x)),
    ("jacrev_network", "jacobian 100 x 50, reverse",
     lambda library, f: lambda x, _: library.jacrev(f)(x)),
    ("hessian_network", "hessian 50 x 50",
     lambda library, f: lambda x, _: library.hessian(_summed(library, f))(x)),
]  # fmt: skip


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    for name, title, derive in ROWS:
        yield name, lambda title=title, derive=derive: _workload(title, derive)
