"""Clean backends made wrong in what only whole programs show, for the checks of level 4.

Each function returns an engine, so that it can be named to another process. What is wrong shows
neither in one call of a kernel nor in a second one.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.ops.elementwise import MULTIPLY
from tensorplug.ops.linalg import BATCH_MAT_MUL
from tensorplug.ops.reduction import SUM
from tensorplug.plugins.assembly import build_engine
from tensorplug.registry import Owner
from tensorplug.tables import kernel_entry
from tensorplug_conformance.checks import NotMeasuredError, Target, checks
from tensorplug_conformance.selftest.backends import WrongBackend, engine_with
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.backend import Backend, FlatCall, FlatProgram
    from tensorplug.engine import Engine
    from tensorplug.spec import KernelSpec
    from tensorplug_conformance.tables import Array

__all__ = ["REFERENCE", "WRONG_PROGRAMS", "WrongProgram", "clean", "try_program"]

REFERENCE: Final = "cpu"


class _Rewrites:
    """Hands on to the clean backend all but compiled programs, each call of which it changes."""

    def __init__(self, clean: Backend, rewrite: Any) -> None:
        self.clean = clean
        self.rewrite = rewrite

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clean, name)

    def compile_program(self, program: FlatProgram) -> Sequence[FlatCall]:
        return [self.rewrite(call, program) for call in program.calls]


class _Remote:
    """Keeps its buffers to itself: they are not shared with the host."""

    def __init__(self, clean: Backend) -> None:
        self.clean = clean

    def __getattr__(self, name: str) -> Any:
        if name.startswith("share_"):
            raise AttributeError(name)
        return getattr(self.clean, name)


def _compiling(rewrite: Any) -> Engine:
    wrong = WrongBackend("rewrites", partial(_Rewrites, rewrite=rewrite), 4, "")
    return engine_with(wrong)


def _running(call: FlatCall, change: Callable[[Any, tuple[Any, ...]], Any]) -> FlatCall:
    """Return a call of one output that does what ``change`` makes of its result and inputs."""

    def run(*buffers: Any) -> Any:
        found = call.run(*buffers)
        if not call.several:
            return change(found, buffers)
        (one,) = found
        return [change(one, buffers)]

    return call if len(call.outputs) != 1 else dataclasses.replace(call, run=run)


def _floating(program: FlatProgram, call: FlatCall) -> bool:
    return program.types[call.outputs[0]].dtype is dt.float32


def clean() -> Engine:
    """Return an engine whose programs are rewritten to themselves: nothing is wrong with it."""
    return _compiling(lambda call, _program: call)


# What is wrong with compiled programs -------------------------------------------------------


def swaps_operands() -> Engine:
    """Return an engine that takes the operands of a fused subtraction the wrong way round."""

    def rewrite(call: FlatCall, _program: FlatProgram) -> FlatCall:
        if call.name != "Sub":
            return call
        return dataclasses.replace(call, inputs=tuple(reversed(call.inputs)))

    return _compiling(rewrite)


def computes_in_half() -> Engine:
    """Return an engine that keeps what lies between fused kernels in float16."""

    def rewrite(call: FlatCall, program: FlatProgram) -> FlatCall:
        if not _floating(program, call) or call.outputs[0] in program.outputs:
            return call
        return _running(call, lambda found, _inputs: found.astype(np.float16).astype(np.float32))

    return _compiling(rewrite)


def remembers_results() -> Engine:
    """Return an engine whose calls go by the shapes they have seen."""

    def rewrite(call: FlatCall, _program: FlatProgram) -> FlatCall:
        seen: dict[Any, Any] = {}
        return _running(
            call,
            lambda found, inputs: seen.setdefault(tuple(np.shape(each) for each in inputs), found),
        )

    return _compiling(rewrite)


def owns_results() -> Engine:
    """Return an engine with one buffer for a result of each program."""

    def rewrite(call: FlatCall, program: FlatProgram) -> FlatCall:
        if call.outputs[0] not in program.outputs:
            return call
        place: list[Array] = []

        def kept(found: Array, _inputs: Any) -> Array:
            if not place:
                place.append(np.array(found))
            np.copyto(place[0], found)
            return place[0]

        return _running(call, kept)

    return _compiling(rewrite)


def writes_into_arguments() -> Engine:
    """Return an engine that takes the memory of its first operand for scratch."""

    def scratched(found: Array, inputs: Any) -> Array:
        first = inputs[0]
        if isinstance(first, np.ndarray) and first.shape == found.shape and first.size:
            result = np.array(found)
            first.flat[-1] = 0
            return result
        return found

    return _compiling(
        lambda call, _program: _running(call, scratched) if call.name == "Multiply" else call
    )


def loses_the_last_block() -> Engine:
    """Return an engine that leaves the rest of a long array out when it goes by blocks."""

    def cut(found: Array, _inputs: Any) -> Array:
        block = 1 << 12
        if found.size <= block or not found.size % block:
            return found
        result = np.array(found)
        result.reshape(-1)[found.size // block * block :] = 0
        return result

    return _compiling(lambda call, _program: _running(call, cut))


def fails_where_empty() -> Engine:
    """Return an engine that divides work by the number of elements."""

    def divided(found: Array, _inputs: Any) -> Array:
        assert 1024 // found.size >= 0
        return found

    return _compiling(
        lambda call, program: _running(call, divided) if _floating(program, call) else call
    )


def keeps_what_it_made() -> Engine:
    """Return an engine that forgets to let go of what lay between the calls of a program."""
    kept: list[Any] = []

    def hold(found: Any, _inputs: Any) -> Any:
        kept.append(found)
        return found

    return _compiling(lambda call, _program: _running(call, hold) if call.name == "Tanh" else call)


def shares_scratch() -> Engine:
    """Return an engine with one scratch block for all threads that run a program."""

    def rewrite(call: FlatCall, _program: FlatProgram) -> FlatCall:
        scratch: dict[Any, Array] = {}

        def through(found: Array, _inputs: Any) -> Array:
            place = scratch.setdefault(found.shape, np.empty_like(found))
            np.copyto(place, found)
            time.sleep(0.001)  # another thread may come in between, as it may on real hardware
            return np.array(place)

        return _running(call, through)

    return _compiling(rewrite)


# What is wrong with kernels, and shows in many calls only -------------------------------------


def _with_kernel(spec: KernelSpec, function: Any, engine: Engine | None = None) -> Engine:
    found = engine or build_engine()
    found.open(REFERENCE)
    entry = kernel_entry(spec, function)
    found.registry.add(Owner("saboteur"), kernels=[(REFERENCE, entry)], override=True)
    return found


def _product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    return np.asarray(np.matmul(left, right))


def _nudged(x: Array, at: int = 0) -> Array:
    """Return ``x`` with one element a unit in the last place larger, as tolerances allow."""
    found = np.array(x)
    if found.size and found.dtype.kind == "f":
        flat = found.reshape(-1)
        flat[at % found.size] = np.nextafter(flat[at % found.size], found.dtype.type(np.inf))
    return found


def differs_by_process() -> Engine:
    """Return an engine whose products depend on where the process happens to lie."""

    def product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
        found = _product(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return _nudged(found, os.getpid())

    return _with_kernel(BATCH_MAT_MUL, product)


def tunes_itself() -> Engine:
    """Return an engine that multiplies in another way once it has seen enough calls."""
    calls = itertools.count()

    def product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
        found = _product(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return _nudged(found) if next(calls) > 40 else found

    return _with_kernel(BATCH_MAT_MUL, product)


def leaks_now_and_then() -> Engine:
    """Return an engine whose sums keep every seventh result: the workspace of a rare path."""
    calls, kept = itertools.count(1), []

    def total(x: Array, *, axis: Any, keep_dims: bool) -> Array:
        found = np.asarray(np.sum(x, axis=axis, keepdims=keep_dims, dtype=x.dtype))
        if not next(calls) % 7:
            kept.append(found)
        return found

    return _with_kernel(SUM, total)


def tires() -> Engine:
    """Return an engine whose sums start from what an old call has left, once in thirty."""
    calls, left = itertools.count(1), [0.0]

    def total(x: Array, *, axis: Any, keep_dims: bool) -> Array:
        found = np.asarray(np.sum(x, axis=axis, keepdims=keep_dims, dtype=x.dtype))
        if not next(calls) % 30:
            found = np.asarray(found + left[0], dtype=x.dtype)
        left[0] = float(found.reshape(-1)[0].real) if found.size else 0.0
        return found

    return _with_kernel(SUM, total)


def takes_operands_for_different() -> Engine:
    """Return an engine that multiplies in place where it thinks that nobody else looks."""

    def product(a: Array, b: Array) -> Array:
        if a is b:
            return np.asarray(np.array(a) + b)
        return np.asarray(np.multiply(a, b))

    return _with_kernel(MULTIPLY, product)


def computes_on_the_host() -> Engine:
    """Return an engine that fetches large operands to multiply them."""

    def product(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool, backend: Any) -> Any:
        hosts = [backend.to_host(each) for each in (a, b)]
        return backend.from_host(
            _product(*hosts, transpose_a=transpose_a, transpose_b=transpose_b)
        )

    engine = engine_with(WrongBackend("is remote", _Remote, 4, ""))
    return _with_kernel(BATCH_MAT_MUL, product, engine)


def multiplies_in_one_place() -> Engine:
    """Return an engine whose products pass through one place for all threads."""
    scratch: dict[Any, Array] = {}

    def product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
        found = _product(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        place = scratch.setdefault(found.shape, np.empty_like(found))
        np.copyto(place, found)
        time.sleep(0.001)  # another thread may come in between, as it may on real hardware
        return np.array(place)

    return _with_kernel(BATCH_MAT_MUL, product)


def recycles_what_has_views() -> Engine:
    """Return an engine that takes memory back when its first buffer goes, whoever looks at it."""
    blocks: list[tuple[Array, weakref.ref[Array]]] = []

    def product(a: Array, b: Array) -> Array:
        found = np.asarray(np.multiply(a, b))
        for at, (block, first) in enumerate(blocks):
            if first() is None and (block.shape, block.dtype) == (found.shape, found.dtype):
                del blocks[at]
                break
        else:
            block = np.empty_like(found)
        np.copyto(block, found)
        buffer = block.view()
        blocks.append((block, weakref.ref(buffer)))
        return buffer

    return _with_kernel(MULTIPLY, product)


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """``make`` returns the engine, and ``check`` of level 4 must find it out."""

    make: Callable[[], Engine]
    check: str

    @property
    def name(self) -> str:
        """What is wrong with it, in words."""
        return self.make.__name__.replace("_", " ")


WRONG_PROGRAMS: Final = (
    WrongProgram(swaps_operands, "compiled = eager: elementwise chain"),
    WrongProgram(swaps_operands, "compiled = eager: step of training"),
    WrongProgram(computes_in_half, "compiled = eager: elementwise chain"),
    WrongProgram(computes_in_half, "compiled = eager: gradients through"),
    WrongProgram(remembers_results, "compiled = eager: variables"),
    WrongProgram(remembers_results, "compiled = eager: loop and choice"),
    WrongProgram(remembers_results, "compiled = eager: random numbers"),
    WrongProgram(owns_results, "compiled = eager: broadcast chain"),
    WrongProgram(writes_into_arguments, "compiled = eager: elementwise chain"),
    WrongProgram(loses_the_last_block, "compiled = eager: long chain"),
    WrongProgram(loses_the_last_block, "compiled = eager: chain into sums"),
    WrongProgram(fails_where_empty, "compiled = eager: empty chain"),
    WrongProgram(keeps_what_it_made, "flat memory: compiled"),
    WrongProgram(shares_scratch, "threads that share a program"),
    WrongProgram(differs_by_process, "same bits in two processes"),
    WrongProgram(tunes_itself, "same seed, same bits"),
    WrongProgram(leaks_now_and_then, "flat memory: training by hand"),
    WrongProgram(leaks_now_and_then, "flat memory: interrupted"),
    WrongProgram(tires, "training float32: logistic regression, by hand"),
    WrongProgram(tires, "training float32: perceptron, SGD"),
    WrongProgram(takes_operands_for_different, "gradients of one's own"),
    WrongProgram(multiplies_in_one_place, "threads that train"),
    WrongProgram(recycles_what_has_views, "scopes"),
    WrongProgram(recycles_what_has_views, "disposal"),
    WrongProgram(computes_on_the_host, "training stays on the device"),
)


def try_program(wrong: WrongProgram) -> tuple[str, bool, str]:
    """Run the check that must find it out; return what was tried, whether it was, and by what."""
    (check,) = (each for each in checks(4) if each.id == wrong.check)
    target = Target(REFERENCE, f"{__name__}:{wrong.make.__name__}")
    session = Session(engine_factory(target.factory), REFERENCE)
    name = f"program that {wrong.name}"
    try:
        check.run(target, lambda: session)
    except NotMeasuredError as reason:
        return name, False, f"not measured: {reason}"
    except Exception as error:  # noqa: BLE001  # as in a worker: whatever it is, it is a verdict
        return name, True, f"{check.id}: {error}".splitlines()[0]
    return name, False, f"check {check.id!r} passed"
