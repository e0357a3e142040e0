"""Compiled against eager: what is compiled is never to take longer.

A gradient is compiled in two ways: the function that computes it, and the function that is
differentiated.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from harness import Workload, measure
from peers import compiling, on

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Call = Callable[[], object]
    Function = Callable[..., Any]


LIMIT: Final = 1.02
"""How many times the eager time a compiled call is to take at most."""

_EAGER: Final = "eager"
_WAYS: Final = ("compiled", "of compiled")
_LARGE: Final = 1 << 24


def _arrays(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


def _embedding() -> list[Any]:
    rows = np.random.default_rng(1).integers(0, 32000, 1 << 14, dtype=np.int32)
    return [*_arrays((32000, 256)), rows]


def _chain(a: Any, b: Any) -> Any:
    y = a
    for _ in range(2):
        y = tp.tanh(y * b + a) - b
        y = y * y
    return y


# The name, the arrays, the function, and the number of arguments to differentiate its sum by.
_ROWS: Final[Sequence[tuple[str, Callable[[], list[Any]], Function, int]]] = (
    ("exp, 2^24", partial(_arrays, (_LARGE,)), tp.exp, 1),
    ("gelu, 2^24", partial(_arrays, (_LARGE,)), tp.nn.gelu, 1),
    ("softmax, 2048 x 4096", partial(_arrays, (2048, 4096)), tp.nn.softmax, 1),
    ("layer norm, 2048 x 4096", partial(_arrays, (2048, 4096)), tp.nn.layer_norm, 1),
    ("sum of rows, 4096^2", partial(_arrays, (4096, 4096)), lambda x: tp.sum(x, axis=1), 0),
    ("matmul, 1024^3", partial(_arrays, (1024, 1024), (1024, 1024)), tp.matmul, 2),
    ("embedding", _embedding, lambda table, rows: tp.take(table, rows, axis=0), 1),
    (
        "max pool 2x2",
        partial(_arrays, (16, 32, 32, 64)),
        lambda x: tp.nn.max_pool(x, 2, 2, "valid"),
        1,
    ),
    ("ten ops, 16 elements", partial(_arrays, (16,), (16,)), _chain, 2),
)


def _both(f: Function, wrt: int) -> Function:
    """Return value and gradients of the sum of ``f``."""
    return tp.value_and_grad(lambda *given: tp.sum(f(*given)), tuple(range(wrt)))


def workloads(backend: str) -> Iterator[Workload]:
    """Yield each row for a backend: forward, then with gradients."""
    for name, arrays, f, wrt in _ROWS:
        ways: dict[str, Function] = {_EAGER: f, "compiled": tp.compile(f)}
        yield _workload(backend, name, arrays, ways)
        if wrt:
            both = _both(f, wrt)
            ways = {
                _EAGER: both,
                "compiled": tp.compile(both),
                "of compiled": _both(tp.compile(f), wrt),
            }
            yield _workload(backend, f"{name}, and back", arrays, ways)


def _workload(
    backend: str, name: str, arrays: Callable[[], list[Any]], ways: dict[str, Function]
) -> Workload:
    given = arrays()

    def make(way: Function) -> Call:
        tensors = [tp.asarray(array) for array in given]
        return lambda: way(*tensors)

    calls = {kind: on(backend, partial(make, way)) for kind, way in ways.items()}
    return Workload(name, _EAGER, calls)


def report(only: Sequence[str], rounds: int, limit: float) -> list[dict[str, Any]]:
    """Measure and print every row, or those whose names contain one of ``only``."""
    rows = []
    for backend in compiling():
        print(f"\n{backend:36}{'eager ms':>10}{'compiled':>10}{'of compiled':>13}{'target':>8}")
        for workload in workloads(backend):
            if only and not any(text in workload.name for text in only):
                continue
            figures = measure(workload, rounds=rounds, limit=limit)
            ratios = {way: figures.ratio(way) for way in figures.seconds if way != _EAGER}
            eager = figures.median(_EAGER) * 1e3
            rows.append({"workload": workload.name, "backend": backend, "ratios": ratios})
            texts = [f"{ratios[way]:.2f}" if way in ratios else "" for way in _WAYS]
            print(
                f"{workload.name:36}{eager:10.3f}{texts[0]:>10}{texts[1]:>13}{LIMIT:8.2f}",
                flush=True,
            )
    return rows
