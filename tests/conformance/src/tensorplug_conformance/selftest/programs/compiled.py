"""Engines that are wrong in compiled programs only."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelRefusedError, expressions, specs
from tensorplug_conformance.interpreter import interpreter
from tensorplug_conformance.loop_interpreter import loop_interpreter
from tensorplug_conformance.selftest.programs.engines import (
    compiling,
    compiling_loops,
    with_results,
)
from tensorplug_conformance.selftest.racing import SharedScratch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.algorithms import loop_bodies
    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import Expression, Group, KernelSpec
    from tensorplug_conformance.case import Array


def _changing(change: Callable[[Any, tuple[Any, ...]], Any], names: Sequence[str] = ()) -> Engine:
    """Return an engine that changes the results of groups, given these and the inputs.

    ``names``: of kernels, one of which must be in the group.
    """

    def rewrite(group: Group) -> Any:
        clean = interpreter(group)
        if names and not set(names) & set(group.name.split("+")):
            return clean
        return lambda *buffers: [change(result, buffers) for result in clean(*buffers)]

    return compiling(rewrite)


def clean() -> Engine:
    """Return an engine whose groups are computed by an interpreter: nothing is wrong with it."""
    return compiling(interpreter)


def _with_outputs(change: Callable[[Expression], Expression]) -> Callable[[Group], Any]:
    """Return what compiles groups with the expressions of their outputs changed."""

    def compile_(group: Group) -> Any:
        outputs = [
            dataclasses.replace(output, expression=change(output.expression))
            for output in group.outputs
        ]
        return interpreter(dataclasses.replace(group, outputs=tuple(outputs)))

    return compile_


def swaps_operands() -> Engine:
    """Return an engine that swaps the operands of a fused subtraction."""

    def swapped(root: Expression) -> Expression:
        operands = [swapped(operand) for operand in root.operands]
        if root.op == "subtract":
            operands.reverse()
        return dataclasses.replace(root, operands=tuple(operands))

    return compiling(_with_outputs(swapped))


def computes_in_half() -> Engine:
    """Return an engine that keeps intermediate results of fused kernels in float16."""

    def halved(result: Array) -> Array:
        return (
            result.astype(np.float16).astype(np.float32) if result.dtype == np.float32 else result
        )

    return compiling(lambda group: interpreter(group, halved))


def declares_what_it_declines() -> Engine:
    """Return an engine that declares all functions, and declines groups with one of them."""

    def rewrite(group: Group) -> Any:
        if any(node.op == "erf" for node in expressions.linearize(group.expressions())):
            raise KernelRefusedError("no erf")
        return interpreter(group)

    return compiling(rewrite)


def approximates_a_function() -> Engine:
    """Return an engine whose groups take log1p(x) for log(1 + x)."""

    def inexact(root: Expression) -> Expression:
        operands = tuple(inexact(operand) for operand in root.operands)
        if root.op == "log1p":
            return expressions.function("log", operands[0] + 1)
        return dataclasses.replace(root, operands=operands)

    return compiling(_with_outputs(inexact))


def keeps_digits() -> Engine:
    """Return an engine whose groups round narrow floats where they store them, and only there."""

    def unrounded(root: Expression) -> Expression:
        operands = tuple(unrounded(operand) for operand in root.operands)
        narrow, exact = root.dtype, {root.dtype, root.dtype.compute}
        if root.op == "cast" and narrow.compute is not narrow and operands[0].dtype in exact:
            return operands[0]
        return dataclasses.replace(root, operands=operands)

    def rewrite(group: Group) -> Any:
        kept = [unrounded(output.expression) for output in group.outputs]
        outputs = [
            dataclasses.replace(output, expression=expressions.cast(root, output.type.dtype))
            for output, root in zip(group.outputs, kept, strict=True)
        ]
        return interpreter(dataclasses.replace(group, outputs=tuple(outputs)))

    return compiling(rewrite)


def remembers_results() -> Engine:
    """Return an engine whose groups return earlier results for the same shapes."""

    def rewrite(group: Group) -> Any:
        compute = interpreter(group)
        seen: dict[Any, Any] = {}
        return lambda *buffers: seen.setdefault(
            tuple(np.shape(operand) for operand in buffers), compute(*buffers)
        )

    return compiling(rewrite)


def _returning_once(spec: KernelSpec) -> Engine:
    first: dict[Any, Any] = {}
    return with_results(spec, lambda result: first.setdefault(np.shape(result), result))


def draws_once() -> Engine:
    """Return an engine whose random numbers are the same in every run."""
    return _returning_once(specs.RANDOM_INTEGERS)


def concatenates_once() -> Engine:
    """Return an engine that keeps the first result of concatenations."""
    return _returning_once(specs.CONCAT)


def owns_results() -> Engine:
    """Return an engine with one set of result buffers per group."""

    def rewrite(group: Group) -> Any:
        compute = interpreter(group)
        places: list[Array] = []

        def run(*buffers: Any) -> Any:
            results = compute(*buffers)
            if not places:
                places.extend(results)
            for place, result in zip(places, results, strict=True):
                np.copyto(place, result)
            return list(places)

        return run

    return compiling(rewrite)


def writes_into_arguments() -> Engine:
    """Return an engine that uses the memory of its first operand as scratch."""

    def scratched(result: Array, inputs: Any) -> Array:
        for first in inputs:
            if isinstance(first, np.ndarray) and first.shape == result.shape and first.size:
                first.flat[-1] = 0
                break
        return result

    return _changing(scratched, ["Multiply"])


def loses_the_last_block() -> Engine:
    """Return an engine that drops the last, incomplete block of a long array."""

    def cut(array: Array, _inputs: Any) -> Array:
        block = 1 << 12
        if array.size <= block or not array.size % block:
            return array
        result = np.array(array)
        result.reshape(-1)[array.size // block * block :] = 0
        return result

    return _changing(cut)


def loses_the_end_of_many() -> Engine:
    """Return an engine that drops the last of some hundred thousand elements."""

    def cut(array: Array, _inputs: Any) -> Array:
        if array.size < 300_000:
            return array
        result = np.array(array)
        result.reshape(-1)[-1] = 0
        return result

    return _changing(cut)


def fails_where_empty() -> Engine:
    """Return an engine that divides work by the number of elements."""

    def divided(result: Array, _inputs: Any) -> Array:
        assert 1024 // result.size >= 0
        return result

    return _changing(divided)


def keeps_what_it_made() -> Engine:
    """Return an engine that keeps the results of its groups."""
    kept: list[Any] = []

    def hold(result: Any, _inputs: Any) -> Any:
        kept.append(result)
        return result

    return _changing(hold, ["Exp", "Tanh"])


def shares_scratch() -> Engine:
    """Return an engine with one scratch block for all threads that run a program."""
    scratch = SharedScratch()
    return _changing(lambda result, _inputs: scratch.passed(result))


def runs_loops() -> Engine:
    """Return an engine whose loops are run by an interpreter: nothing is wrong with it."""
    return compiling_loops(loop_interpreter)


def turns_loops_round() -> Engine:
    """Return an engine whose loops begin at the other end of their sequences."""
    return compiling_loops(
        lambda body: loop_interpreter(dataclasses.replace(body, reverse=not body.reverse))
    )


def asks_too_late() -> Engine:
    """Return an engine whose loops end after the step for which the condition did not hold."""

    def rewrite(body: loop_bodies.LoopBody) -> Any:
        if body.holds is None:
            return loop_interpreter(body)
        counted = loop_interpreter(dataclasses.replace(body, length=None))
        once = loop_interpreter(dataclasses.replace(body, length=1, holds=None))

        def run(*buffers: Any) -> Any:
            return once(*counted(*buffers), *buffers[body.carries :])

        return run

    return compiling_loops(rewrite)
