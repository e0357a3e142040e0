"""Engines with a kernel that is wrong only after many calls, or in some processes."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.floats import kind_of
from tensorplug_conformance.selftest.delegates import Remote
from tensorplug_conformance.selftest.programs.engines import delegating, with_kernel, with_results
from tensorplug_conformance.selftest.racing import SharedScratch

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine
    from tensorplug_conformance.case import Array


def _product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    return np.asarray(np.matmul(left, right))


def _nudged(x: Array, at: int = 0) -> Array:
    """Return ``x`` with one element a unit in the last place larger, as tolerances allow."""
    result = np.array(x)
    if result.size and kind_of(result.dtype) == "f":
        flat = result.reshape(-1)
        flat[at % result.size] = np.nextafter(flat[at % result.size], result.dtype.type(np.inf))
    return result


def differs_by_process() -> Engine:
    """Return an engine whose products depend on the addresses of the process."""

    def product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
        result = _product(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return _nudged(result, os.getpid())

    return with_kernel(specs.BATCH_MAT_MUL, product)


def tunes_itself() -> Engine:
    """Return an engine that multiplies in another way once it has seen enough calls."""
    calls = itertools.count()

    def product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
        result = _product(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return _nudged(result) if next(calls) > 40 else result

    return with_kernel(specs.BATCH_MAT_MUL, product)


def tunes_convolutions() -> Engine:
    """Return an engine with a faster convolution, of half the digits, from the fourth call on."""
    calls: Counter[tuple[int, ...]] = Counter()

    def tuned(result: Array) -> Array:
        calls[result.shape] += 1
        if calls[result.shape] < 4:
            return result
        half = np.float16 if result.dtype == np.float32 else np.float32
        return np.asarray(result.astype(half).astype(result.dtype))

    return with_results(specs.CONV2D, tuned)


def leaks_now_and_then() -> Engine:
    """Return an engine whose sums keep every seventh result: the workspace of a rare path."""
    calls, kept = itertools.count(1), []

    def total(x: Array, *, axis: Any, keep_dims: bool) -> Array:
        result = np.asarray(np.sum(x, axis=axis, keepdims=keep_dims, dtype=x.dtype))
        if not next(calls) % 7:
            kept.append(result)
        return result

    return with_kernel(specs.SUM, total)


def tires() -> Engine:
    """Return an engine whose sums start from an old call's result, once in thirty."""
    calls, left = itertools.count(1), [0.0]

    def total(x: Array, *, axis: Any, keep_dims: bool) -> Array:
        result = np.asarray(np.sum(x, axis=axis, keepdims=keep_dims, dtype=x.dtype))
        if not next(calls) % 30:
            result = np.asarray(result + left[0], dtype=x.dtype)
        left[0] = float(result.reshape(-1)[0].real) if result.size else 0.0
        return result

    return with_kernel(specs.SUM, total)


def knows_one_matrix() -> Engine:
    """Return an engine whose products of several matrices are all the first one."""

    def product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
        left = a.swapaxes(-1, -2) if transpose_a else a
        result = left @ (b.swapaxes(-1, -2) if transpose_b else b)
        if result.ndim > 2 and result.size:
            result[...] = result.reshape((-1, *result.shape[-2:]))[0]
        return np.asarray(result)

    return with_kernel(specs.BATCH_MAT_MUL, product)


def takes_operands_for_different() -> Engine:
    """Return an engine that multiplies in place although others see the memory."""

    def product(a: Array, b: Array) -> Array:
        if a is b:
            return np.asarray(np.array(a) + b)
        return np.asarray(np.multiply(a, b))

    return with_kernel(specs.MULTIPLY, product)


def computes_on_the_host() -> Engine:
    """Return an engine that multiplies large operands on the host."""

    def product(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool, backend: Any) -> Any:
        hosts = [backend.to_host(array) for array in (a, b)]
        return backend.from_host(
            _product(*hosts, transpose_a=transpose_a, transpose_b=transpose_b)
        )

    engine = delegating(Remote)
    return with_kernel(specs.BATCH_MAT_MUL, product, engine)


def multiplies_in_one_place() -> Engine:
    """Return an engine whose products pass through one buffer for all threads."""
    scratch = SharedScratch()

    def product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
        return scratch.passed(_product(a, b, transpose_a=transpose_a, transpose_b=transpose_b))

    return with_kernel(specs.BATCH_MAT_MUL, product)
