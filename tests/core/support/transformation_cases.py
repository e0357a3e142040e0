"""Functions and transformations that are the same in JAX and here, and their compositions.

``record_transformations.py`` computes them with JAX; ``test_transformations_jax.py`` compares.
Everything is written against a ``Library``, so that both compute from one text.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np

_random = np.random.default_rng(0)
MATRIX: Final = _random.standard_normal((3, 3))
POINT: Final = _random.standard_normal(3)
ROWS: Final = _random.standard_normal((4, 3))
COLUMNS: Final = _random.standard_normal((3, 4))
CHOICES: Final = np.array([0, 2, 1, 1])


class Library(NamedTuple):
    """One of the two libraries.

    ``ops``: has the functions of arrays, ``own`` the transformations. ``loops``: has ``scan`` and
    its like. ``asarray`` keeps the dtype of a NumPy array. ``compile``, ``checkpoint``,
    ``softmax``, ``inv``, ``outer``, ``concat``: as named.
    """

    ops: Any
    own: Any
    loops: Any
    asarray: Any
    compile: Any
    checkpoint: Any
    softmax: Any
    inv: Any
    outer: Any
    concat: Any


def functions(lib: Library) -> dict[str, Any]:
    """Return functions of a vector of three numbers, with one number as result."""
    ops, loops, own = lib.ops, lib.loops, lib
    matrix, rows = lib.asarray(MATRIX), lib.asarray(ROWS)

    def step(carry: Any, row: Any, x: Any) -> Any:
        return ops.tanh(carry * row + x), ops.sum(carry)

    return {
        "products": lambda x: ops.sum(ops.tanh(matrix @ x) * x),
        "carry": lambda x: ops.sum(loops.scan(lambda c, row: step(c, row, x), x, rows)[0]),
        "stacked": lambda x: ops.sum(
            loops.scan(lambda c, row: (ops.sin(c) + matrix @ c, c * row), x, rows)[1]
        ),
        "reversed": lambda x: ops.sum(
            loops.scan(lambda c, row: (c * ops.cos(row), c + row), x, rows, reverse=True)[1] ** 2
        ),
        "associative": lambda x: ops.sum(loops.associative_scan(lambda a, b: a * b, rows * x)[-1]),
        "cond": lambda x: ops.sum(loops.cond(ops.sum(x) > 0, ops.sin, lambda v: v * v, x)),
        "fori": lambda x: ops.sum(loops.fori_loop(0, 3, lambda i, v: ops.sin(v) * (i + 1.0), x)),
        "checkpoint": lambda x: ops.sum(own.checkpoint(lambda v: ops.exp(-v * v))(matrix @ x)),
        "compile": lambda x: ops.sum(own.compile(lambda v: ops.exp(-v * v) * v)(matrix @ x)),
        "softmax": lambda x: ops.sum(own.softmax(matrix @ x) * x),
        "where": lambda x: ops.sum(ops.where(x > 0, x * x * x, ops.exp(x))),
        "reductions": lambda x: ops.prod(x) + ops.max(x) * ops.min(x) + ops.sum(x * x) ** 2,
        "inverse": lambda x: ops.sum(own.inv(matrix + own.outer(x, x))),
        "indexing": lambda x: (
            x[0] * x[1] + ops.sum(x[::2] ** 3) + ops.sum(own.concat([x, x * x]) ** 2)
        ),
    }


def transformations(lib: Library) -> dict[str, Any]:
    """Return what takes one of ``functions`` and computes an array from it."""
    own, compiled = lib.own, lib.compile
    point, rows = lib.asarray(POINT), lib.asarray(ROWS)
    direction = rows[0]

    def total(f: Any) -> Any:
        return lambda z: lib.ops.sum(own.vmap(f)(z))

    def along(f: Any) -> Any:
        return lambda x: own.jvp(f, (x,), (direction,))[1]

    return {
        "f": lambda f: f(point),
        "compile": lambda f: compiled(f)(point),
        "grad": lambda f: own.grad(f)(point),
        "compile(grad)": lambda f: compiled(own.grad(f))(point),
        "grad(compile)": lambda f: own.grad(compiled(f))(point),
        "jvp": lambda f: along(f)(point),
        "compile(jvp)": lambda f: compiled(along(f))(point),
        "linearize": lambda f: own.linearize(f, point)[1](direction),
        "vmap": lambda f: own.vmap(f)(rows),
        "compile(vmap)": lambda f: compiled(own.vmap(f))(rows),
        "vmap(compile)": lambda f: own.vmap(compiled(f))(rows),
        "vmap(grad)": lambda f: own.vmap(own.grad(f))(rows),
        "compile(vmap(grad))": lambda f: compiled(own.vmap(own.grad(f)))(rows),
        "grad(vmap)": lambda f: own.grad(total(f))(rows),
        "compile(grad(vmap))": lambda f: compiled(own.grad(total(f)))(rows),
        "hessian": lambda f: own.hessian(f)(point),
        "compile(hessian)": lambda f: compiled(own.hessian(f))(point),
        "vmap(hessian)": lambda f: own.vmap(own.hessian(f))(rows),
        "jacfwd(jacfwd)": lambda f: own.jacfwd(own.jacfwd(f))(point),
        "jacrev(grad)": lambda f: own.jacrev(own.grad(f))(point),
        "jvp(grad)": lambda f: along(own.grad(f))(point),
        "grad(jvp)": lambda f: own.grad(along(f))(point),
        "jvp(vmap)": lambda f: own.jvp(own.vmap(f), (rows,), (rows[::-1],))[1],
    }


def calls(lib: Library) -> dict[str, Any]:
    """Return calls, without arguments, of what ``transformations`` do not reach."""
    ops, loops, own, compiled = lib.ops, lib.loops, lib.own, lib.compile
    x, y, k = lib.asarray(ROWS), lib.asarray(COLUMNS), lib.asarray(CHOICES)
    w, start, three = x[:3], x[0], lib.asarray(np.array(3))
    many = [lambda v: v, lambda v: v * v, ops.sin]

    def doubled(v: Any) -> Any:
        return loops.while_loop(lambda u: ops.sum(u * u) < 50.0, lambda u: u * 2 + 1, v)

    def chosen(z: Any) -> Any:
        return own.vmap(lambda at, row: loops.switch(at, many, row))(k, z)

    def recurrent(weights: Any, wrap: Any = lambda f: f) -> Any:
        body = wrap(lambda c, row: (ops.tanh(weights @ c + row), c))
        return ops.sum(loops.scan(body, start, x)[1])

    def piecewise(z: Any) -> Any:
        positive = ops.sum(z) > 0
        return ops.sum(loops.cond(positive, lambda v: v * v * 2, lambda v: -v * v * v, z))

    def pairs(q: Any) -> Any:
        return loops.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (q, q * q))[
            1
        ]

    def named(c: Any, row: Any) -> Any:
        return {"h": ops.tanh(c["h"] + row["x"]), "n": c["n"] + 1}, {"o": c["h"]}

    def of_dicts(z: Any) -> Any:
        zero = lib.asarray(np.array(0))
        return compiled(lambda q: loops.scan(named, {"h": q[0], "n": zero}, {"x": q}))(z)

    def nested(z: Any) -> Any:
        return ops.sum(
            loops.scan(lambda c, _: (loops.scan(lambda d, q: (d * q + q, d), c, x)[0], c), z, x)[0]
        )

    def tree_in(d: Any, s: Any) -> Any:
        return d["a"] * s + d["b"]

    return {
        "vmap, axes 0 and 1": lambda: own.vmap(lambda a, b: a @ b, in_axes=(0, 1))(x, y),
        "vmap, out axis 1": lambda: own.vmap(lambda a: a * 2, out_axes=1)(x),
        "vmap, out axis -1": lambda: own.vmap(lambda a: lib.outer(a, a), out_axes=-1)(x),
        "vmap, tree of axes": lambda: own.vmap(tree_in, in_axes=({"a": 0, "b": None}, None))(
            {"a": x, "b": start}, 3.0
        ),
        "vmap, tree of results": lambda: own.vmap(
            lambda a: {"s": ops.sum(a), "p": (a, a * a)}, out_axes={"s": 0, "p": (1, 0)}
        )(x)["p"][0],
        "vmap, result without axis": lambda: own.vmap(lambda a: (a, start), out_axes=(0, None))(x)[
            1
        ],
        "vmap, no arguments": own.vmap(lambda: start, axis_size=3),
        "vmap of indexing": lambda: own.vmap(lambda a, at: a[at % 3])(x, k),
        "vmap of argsort": lambda: own.vmap(ops.argsort)(x),
        "vmap of argmax": lambda: own.vmap(ops.argmax)(x),
        "vmap of new axes": lambda: own.vmap(lambda a: a[:, None] * a[None, ::-1])(x),
        "vmap(grad) of a guarded root": lambda: own.vmap(
            own.grad(lambda a: ops.where(a > 0, ops.sqrt(ops.where(a > 0, a, 1.0)), 0.0))
        )(x[:, 0]),
        "vmap of while": lambda: own.vmap(doubled)(x),
        "compile(vmap) of while": lambda: compiled(own.vmap(doubled))(x),
        "jvp of while": lambda: own.jvp(doubled, (x[0],), (x[1],))[1],
        "vmap of switch": lambda: chosen(x),
        "compile(grad(vmap)) of switch": lambda: compiled(own.grad(lambda z: ops.sum(chosen(z))))(
            x
        ),
        "switch beyond the last": lambda: loops.switch(7, many[:2], x),
        "compiled switch below 0": lambda: compiled(lambda at: loops.switch(at - 6, many[:2], x))(
            three
        ),
        "map": lambda: loops.map(lambda row: ops.sum(row) * row, x),
        "associative_scan": lambda: loops.associative_scan(lambda a, b: a * b, x),
        "associative_scan, reversed": lambda: loops.associative_scan(
            lambda a, b: a + b, x, reverse=True, axis=1
        ),
        "associative_scan of pairs": lambda: pairs(x),
        "grad(associative_scan)": lambda: own.grad(lambda q: ops.sum(pairs(q)))(x),
        "compile(associative_scan)": lambda: compiled(pairs)(x),
        "scan without xs": lambda: loops.scan(lambda c, _: (c * 2, c), start, None, length=4)[1],
        "compiled scan without xs": lambda: compiled(
            lambda c: loops.scan(lambda d, _: (d * 2, d), c, None, length=4)[1]
        )(start),
        "compiled scan of dicts": lambda: of_dicts(x)[1]["o"],
        "compiled scan that counts": lambda: of_dicts(x)[0]["n"],
        "compiled scan of no steps": lambda: compiled(
            lambda z: loops.scan(lambda c, row: (c * row, c), z, x[:0])[1]
        )(start),
        "grad by captured weights": lambda: compiled(own.grad(recurrent))(w),
        "second grad by captured weights": lambda: compiled(
            own.grad(lambda v: ops.sum(own.grad(recurrent)(v) ** 2))
        )(w),
        "vmap over captured weights": lambda: compiled(
            own.vmap(lambda v: loops.scan(lambda c, row: (ops.tanh(v * c + row), c), start, x)[1])
        )(x),
        "checkpoint inside scan": lambda: compiled(
            own.grad(functools.partial(recurrent, wrap=lib.checkpoint))
        )(w),
        "grad of nested scans": lambda: compiled(own.grad(nested))(start),
        "fori_loop, traced bound": lambda: compiled(
            lambda n: loops.fori_loop(0, n, lambda i, v: v * 1.5 + i, x)
        )(three),
        "fori_loop, no steps": lambda: loops.fori_loop(5, 2, lambda i, v: v * 1.5 + i, x),
        "grad of compiled cond": lambda: compiled(own.grad(piecewise))(x),
        "vmap(grad) of compiled cond": lambda: compiled(own.vmap(own.grad(piecewise)))(x),
        "hessian times vector": lambda: own.jvp(
            own.grad(lambda a: ops.sum(ops.sin(a) ** 2 * a)), (x,), (x,)
        )[1],
    }
