"""The saboteurs, by kind. Each is a mistake from a real kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.selftest.sabotage import Call, Saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array

from tensorplug_conformance.selftest.wrong_formulas import (
    half_sum,
    max_skips_nan,
    narrow_mean,
    narrow_norm,
    narrow_product,
    narrow_softmax,
    narrow_sum,
    scatter_assigns,
    ties_last,
    unstable_softmax,
    without_a_half,
)


def _elements(change: Callable[[Array], Any]) -> Callable[[Call], Any]:
    """Return a saboteur that changes every output."""

    def wrong(call: Call) -> Any:
        with np.errstate(all="ignore"):
            return [change(output) for output in call.clean()]

    return wrong


def _host(function: Callable[..., Any]) -> Callable[[Call], Any]:
    """Return a saboteur that computes from the inputs and attributes in another way."""

    def wrong(call: Call) -> Any:
        with np.errstate(all="ignore"):
            return [function(*call.inputs(), **call.attributes)]

    return wrong


def _with(**changed: Any) -> Callable[[Call], Any]:
    """Return a saboteur that ignores attributes: it always takes these."""

    def wrong(call: Call) -> Any:
        rank = np.asarray(call.inputs()[0]).ndim if call.buffers else 0
        fitting = {
            name: value(rank) if callable(value) else value for name, value in changed.items()
        }
        try:
            return call.clean(**fitting)
        except (ValueError, IndexError, TypeError):  # the wrong attribute fits no such shape
            return call.clean()

    return wrong


def _only(
    condition: Callable[[Call], bool], change: Callable[[Array], Any]
) -> Callable[[Call], Any]:
    """Return a saboteur that strikes under a condition only."""

    def wrong(call: Call) -> Any:
        results = call.clean()
        return [change(array) for array in results] if condition(call) else results

    return wrong


def _large(call: Call) -> bool:
    return max(type_.size for type_ in call.types) > 1 << 16


def _huge(call: Call) -> bool:
    return max(type_.size for type_ in call.types) > 1 << 20


def _strided(call: Call) -> bool:
    return any(
        not buffer.flags.c_contiguous for buffer in call.buffers if isinstance(buffer, np.ndarray)
    )


def _bump_first(x: Array) -> Array:
    out = x.copy()
    if out.size:
        out.flat[0] = out.flat[0] + 1
    return out


def _drop_last(x: Array) -> Array:
    out = x.copy()
    if out.size > 1:
        out.flat[-1] = out.flat[-2]
    return out


def _mutates(call: Call) -> Any:
    outcome = call.run(call.buffers, {})
    target = call.buffers[0]
    if target.size:
        target.flags.writeable = True
        np.copyto(target, np.flip(target).copy())
    return outcome


def _aliases(call: Call) -> Any:
    """Write every result into the buffer of the first."""
    outcome = call.run(call.buffers, {})[0]
    kept = call.memory.setdefault("buffer", np.array(outcome))
    np.copyto(kept, outcome)
    return [kept]


def _stale(call: Call) -> Any:
    return call.memory.setdefault("result", call.run(call.buffers, {}))


def _second_call(call: Call) -> Any:
    results = call.clean()
    call.memory["calls"] = call.memory.get("calls", 0) + 1
    if call.memory["calls"] < 3:
        return results
    with np.errstate(over="ignore"):  # after the largest number comes infinity
        return [np.nextafter(array, np.inf) for array in results]


def _narrow_channels(call: Call) -> Any:
    """Add up what the channels give, each of which is right, in the dtype of the result."""
    x, taps = call.inputs()
    axis = call.attributes["data_format"].index("C")
    parts = [
        call.as_of([x.take([at], axis), taps.take([at], 2)])[0] for at in range(taps.shape[2])
    ]
    return [sum(parts[1:], parts[0])] if parts else call.clean()


def _cut_off(call: Call) -> Any:
    """Take the upper bits of floats for bfloat16, which rounds towards zero."""
    (x,), target = call.inputs(), call.attributes["dtype"]
    if target is not dt.bfloat16:
        return call.clean()
    return [(x.view(np.uint32) >> 16).astype(np.uint16).view(target.numpy)]


def _ties_away(call: Call) -> Any:
    """Round numbers half way between two of bfloat16 away from zero, not to the even one."""
    (x,), target = call.inputs(), call.attributes["dtype"]
    if target is not dt.bfloat16:
        return call.clean()
    right = call.clean()[0]
    away = ((x.view(np.uint32) + np.uint32(0x8000)) >> 16).astype(np.uint16).view(target.numpy)
    return [np.where(np.isfinite(right), away, right)]


def _zero_padded(call: Call) -> Any:
    return [np.maximum(output, 0) for output in call.clean()]


def _wrong_second(call: Call) -> Any:
    first, second = call.clean()
    return [first, second[..., ::-1]]


def _truncated(call: Call) -> Any:
    a, b = call.inputs()
    with np.errstate(all="ignore"):
        return [np.trunc(a / b)]


def _negative_as_0(call: Call) -> Any:
    x, indices = call.inputs()
    return call.clean([x, np.maximum(indices, 0)])


def saboteurs() -> tuple[Saboteur, ...]:
    """Return all of them."""
    off = 1 + 1e-4
    near = [
        Saboteur("fast approximation", name, _elements(lambda y: y * off))
        for name in ("Exp", "Log", "Sqrt", "Sin", "Cos", "Atan", "Erf", "Tanh", "Pow", "RealDiv")
    ]
    sizes = [
        Saboteur("wrong only above 2**16", name, _only(_large, _drop_last), dtype)
        for name, dtype in (
            ("Add", "float32"),
            ("Transpose", "int32"),
            ("Sum", "float32"),
            ("Concat", "int32"),
            ("Cast", "int32"),
            ("MaxPool", "float32"),
        )
    ]
    sizes += [
        Saboteur("a part left out above 2**20", name, _only(_huge, without_a_half), dtype)
        for name, dtype in (("Add", "float32"), ("Tanh", "float32"), ("LogicalNot", "bool"))
    ]
    strides = [
        Saboteur("wrong only when strided", name, _only(_strided, _bump_first), dtype)
        for name, dtype in (
            ("Multiply", "float32"),
            ("Reshape", "int32"),
            ("BatchMatMul", "float32"),
            ("GatherV2", "int32"),
        )
    ]
    firsts = [
        Saboteur("off by one", name, _elements(_bump_first), "int32")
        for name in ("Add", "ArgMax", "Slice", "PadV2", "Range", "Fill", "TopK", "OneHot")
    ]
    mutants = [
        Saboteur("input changed", name, _mutates, raw=True)
        for name in ("Neg", "Add", "Sum", "Softmax", "Reshape")
    ]
    buffers = [
        Saboteur(kind, name, wrong, raw=True)
        for name in ("Abs", "Maximum", "Transpose")
        for kind, wrong in (("output aliased", _aliases), ("stale result", _stale))
    ]
    return (*near, *sizes, *strides, *firsts, *mutants, *buffers, *_ignored(), *_rules())


def _ignored() -> list[Saboteur]:
    """Return those that ignore or misread an attribute."""
    rest: list[tuple[str, dict[str, Any]]] = [
        ("Sum", {"axis": lambda rank: (max(rank - 1, 0),)}),
        ("Max", {"reduction_indices": (0,)}),
        ("ArgMax", {"axis": 0}),
        ("Softmax", {"dim": lambda rank: rank - 1}),
        ("Transpose", {"perm": lambda rank: tuple(reversed(range(rank)))}),
        ("Concat", {"axis": 0}),
        ("GatherV2", {"axis": 0}),
    ]
    items = [Saboteur("wrong axis", name, _with(**changed)) for name, changed in rest]
    for name, changed in (
        ("BatchMatMul", {"transpose_a": False}),
        ("BatchMatMul", {"transpose_b": False}),
        ("PadV2", {"constant_value": 0}),
        ("Conv2D", {"dilations": (1, 1)}),
        ("Conv2D", {"data_format": "NHWC"}),
        ("OneHot", {"off_value": 0}),
        ("Range", {"step": 1}),
    ):
        (attribute,) = changed
        dtype = "int32" if name == "OneHot" else "float32"
        items.append(Saboteur(f"{attribute} ignored", name, _with(**changed), dtype))
    return items


def _rules() -> list[Saboteur]:
    """Return those that break a rule of arithmetic, of order or of special values."""
    return [
        Saboteur("NaN lost", "Maximum", _host(np.fmax)),
        Saboteur("NaN lost", "Max", _host(max_skips_nan)),
        Saboteur("NaN lost", "Relu", _host(lambda x: np.where(x > 0, x, 0))),
        Saboteur("NaN equal", "Equal", _host(lambda a, b: (a == b) | (np.isnan(a) & np.isnan(b)))),
        Saboteur("sign of zero lost", "Neg", _host(lambda x: 0 - x)),
        Saboteur("sign of zero lost", "Floor", _elements(lambda y: y + 0.0)),
        Saboteur(
            "subnormals flushed",
            "Multiply",
            _elements(lambda y: np.where(np.abs(y) < finfo(y.dtype).tiny, 0, y)),
        ),
        Saboteur("infinities clipped", "Exp", _elements(np.nan_to_num)),
        Saboteur("ties last", "ArgMax", _host(ties_last), "int32"),
        Saboteur("truncates", "FloorDiv", _truncated),
        Saboteur("truncates", "FloorDiv", _truncated, "int32"),
        Saboteur("truncates", "Floor", _host(np.trunc)),
        Saboteur("sign of dividend", "Mod", _host(np.fmod), "int32"),
        Saboteur("sign of dividend", "Mod", _host(np.fmod)),
        Saboteur(
            "rounds to nearest", "Cast", _host(lambda x, *, dtype: np.rint(x).astype(dtype.numpy))
        ),
        Saboteur(
            "saturates",
            "Add",
            _host(lambda a, b: np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1)),
            "int32",
        ),
        Saboteur(
            "through float32",
            "Multiply",
            _host(lambda a, b: a.astype(np.float32) * b.astype(np.float32)),
            "int32",
        ),
        Saboteur(
            "through float32",
            "Sum",
            _host(
                lambda x, *, axis, keep_dims: x.astype(np.float32).sum(
                    axis=axis, keepdims=keep_dims
                )
            ),
            "float64",
        ),
        Saboteur("half-precision accumulator", "Sum", _host(half_sum)),
        *(
            Saboteur("narrow accumulator", name, wrong, "bfloat16", demanded=True)
            for name, wrong in (
                ("Sum", _host(narrow_sum)),
                ("Mean", _host(narrow_mean)),
                ("BatchMatMul", _host(narrow_product)),
                ("Softmax", _host(narrow_softmax)),
                ("LayerNorm", _host(narrow_norm)),
                ("Conv2D", _narrow_channels),
            )
        ),
        Saboteur("rounds towards zero", "Cast", _cut_off, demanded=True),
        Saboteur("ties away from zero", "Cast", _ties_away, demanded=True),
        Saboteur("lost update", "ScatterNd", _host(scatter_assigns)),
        Saboteur("lost update", "ScatterNd", _host(scatter_assigns), "int32"),
        Saboteur("negative index", "GatherV2", _negative_as_0),
        Saboteur("wrong second output", "TopK", _wrong_second),
        Saboteur("padding wins", "MaxPool", _zero_padded),
        Saboteur("not shifted", "Softmax", _host(unstable_softmax)),
        Saboteur("infinities", "FloorDiv", _host(np.floor_divide)),
        Saboteur("saturates", "Cast", _saturated),
        Saboteur("operands swapped", "Sub", _host(lambda a, b: b - a)),
        Saboteur("operands swapped", "Less", _host(lambda a, b: a > b), "int32"),
        Saboteur("condition inverted", "Select", _host(lambda c, t, e: np.where(c, e, t))),
        Saboteur("wrong where empty", "Sum", _only(_empty_input, lambda y: y + 1)),
        Saboteur("wrong where empty", "Prod", _only(_empty_input, lambda y: y * 0)),
        Saboteur("not deterministic", "Multiply", _second_call),
        Saboteur("wrong dtype", "Less", _wrong_dtype, raw=True),
        Saboteur("wrong shape", "Mean", _wrong_shape, raw=True),
        Saboteur(
            "adds the identity", "Prod", _elements(lambda y: y + np.finfo(np.float32).eps * 64)
        ),
    ]


def _empty_input(call: Call) -> bool:
    return any(operand.size == 0 for operand in call.inputs())


def _saturated(call: Call) -> Any:
    """Cut floats to the limits of the integers, which is right for all that fit."""
    (x,), target = call.inputs(), call.attributes["dtype"].numpy
    if target.kind not in "iu":
        return call.clean()
    limits = np.iinfo(target)
    low, high = np.float64(limits.min), np.nextafter(np.float64(limits.max), 0)
    whole = np.clip(np.where(np.isfinite(x), x, 0).astype(np.float64), low, high)
    return [whole.astype(target)]


def _wrong_dtype(call: Call) -> Any:
    return [call.backend.from_host(output.astype(np.uint8)) for output in call.clean()]


def _wrong_shape(call: Call) -> Any:
    return [call.backend.from_host(output.reshape(1, *output.shape)) for output in call.clean()]
