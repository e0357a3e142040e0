"""Workloads of loops in compiled functions: a GRU by ``scan`` over 1000 steps, and back."""

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

STEPS, BATCH, FEATURES, UNITS = 1000, 8, 16, 32


def _arrays() -> tuple[dict[str, Any], Any]:
    """Return parameters, and sequences [time, batch, features]."""
    rng = np.random.default_rng(0)
    shapes = {
        "kernel": (FEATURES, 3 * UNITS),
        "recurrent": (UNITS, 3 * UNITS),
        "bias": (3 * UNITS,),
    }
    parameters = {
        name: np.asarray(rng.standard_normal(shape) / math.sqrt(UNITS), np.float32)
        for name, shape in shapes.items()
    }
    return parameters, rng.standard_normal((STEPS, BATCH, FEATURES), dtype=np.float32)


def _loss(library: Any, scan: Any, sigmoid: Any, p: dict[str, Any], xs: Any) -> Any:
    """Return the mean square of all states: the same for each library."""

    def step(h: Any, x: Any) -> tuple[Any, Any]:
        xr, xz, xn = library.split(x @ p["kernel"] + p["bias"], 3, axis=1)
        ar, az, an = library.split(h @ p["recurrent"], 3, axis=1)
        z = sigmoid(xz + az)
        n = library.tanh(xn + sigmoid(xr + ar) * an)
        h = (1 - z) * n + z * h
        return h, h

    _, states = scan(step, library.zeros((BATCH, UNITS), dtype=library.float32), xs)
    return library.mean(states * states)


def _ours(p: dict[str, Any], xs: Any) -> Any:
    return _loss(tp, tp.scan, tp.nn.sigmoid, p, xs)


def _jax(p: dict[str, Any], xs: Any) -> Any:
    import jax

    return _loss(jax.numpy, jax.lax.scan, jax.nn.sigmoid, p, xs)


def _workload(name: str, ours: Callable[..., Call], theirs: Callable[..., Call]) -> Workload:
    parameters, xs = _arrays()

    def called() -> Call:
        given = {name: tp.asarray(array) for name, array in parameters.items()}
        return ours(given, tp.asarray(xs))

    contenders = {f"tensorplug {name} compiled": on(name, called) for name in compiling()}
    if available("jax"):
        import jax

        given = {name: jax.numpy.asarray(array) for name, array in parameters.items()}
        contenders["jax jit"] = theirs(given, jax.numpy.asarray(xs))
    return Workload(name, "jax jit" if available("jax") else "tensorplug cpu compiled", contenders)


def gru_forward() -> Workload:
    """Loss alone."""

    def ours(p: Any, xs: Any) -> Call:
        loss = tp.compile(_ours)
        return lambda: loss(p, xs)

    def theirs(p: Any, xs: Any) -> Call:
        import jax

        loss = jax.jit(_jax)
        return lambda: jax.block_until_ready(loss(p, xs))

    return _workload("GRU by scan, 1000 steps", ours, theirs)


def gru() -> Workload:
    """Loss and gradient of all parameters."""

    def ours(p: Any, xs: Any) -> Call:
        both = tp.compile(tp.value_and_grad(_ours))
        return lambda: both(p, xs)

    def theirs(p: Any, xs: Any) -> Call:
        import jax

        both = jax.jit(jax.value_and_grad(_jax))
        return lambda: jax.block_until_ready(both(p, xs))

    return _workload("GRU by scan, 1000 steps, and gradient", ours, theirs)


def compiling_gru() -> Workload:
    """The time to compile that, without a run: from a function to a program."""

    def ours(p: Any, xs: Any) -> Call:
        return lambda: tp.compile(tp.value_and_grad(_ours)).program(p, xs)

    def theirs(p: Any, xs: Any) -> Call:
        import jax

        return lambda: jax.jit(jax.value_and_grad(_jax)).lower(p, xs).compile()

    return _workload("compiling the GRU by scan", ours, theirs)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    yield "gru_scan_forward", gru_forward
    yield "gru_scan", gru
    yield "gru_scan_compile", compiling_gru
