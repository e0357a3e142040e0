"""An axis, a size or a number out of range is refused, whatever the other arguments are.

Derived: each public function is called as in its own example, with one argument out of range, and
with the others changed so that branches are taken that do not need it: numbers instead of tensors,
one element, none, lists of one tensor, options left out, zeros and ones.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.public_functions import PUBLIC

import tensorplug as tp
from tensorplug.errors import OutOfRangeError, TensorplugError
from tensorplug.introspection.public_functions import example_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("on_the_cpu")

AXES = ("Axis", "Axis | None")
INTEGERS = ("int", "int | None")
SIZES = ("ShapeLike", "PerAxis", "SupportsIndex")
NAMES_OF_AXES = {"axis", "axes", "axis1", "axis2", "source", "destination", "channel_axis", "kth"}
FAR = (77, -78)

_CORNER = "a diagonal beyond the corner has no elements, as in NumPy"
BY_DESIGN = {
    **dict.fromkeys(("tp.diagonal: offset", "tp.linalg.diagonal: offset"), _CORNER),
    **dict.fromkeys(("tp.linalg.trace: offset", "tp.eye: k"), _CORNER),
    **dict.fromkeys(("tp.tril: k", "tp.triu: k"), _CORNER),
    **dict.fromkeys(
        ("tp.linalg.band_part: num_lower", "tp.linalg.band_part: num_upper"),
        "a negative number stands for all diagonals",
    ),
    "tp.linalg.matrix_power: n": "a negative power is one of the inverse",
    "tp.roll: shift": "what is shifted out at one end comes in at the other",
    "tp.losses.sparse_softmax_cross_entropy: ignore_index": "a label that need not be a class",
}


def _numbers() -> dict[str, tuple[Callable[..., Any], str, tuple[Any, ...]]]:
    """Return the functions and the names of their axes and integers, and what is out of range."""
    found = {}
    for path, function in PUBLIC.items():
        if inspect.isclass(function) or path.startswith(("tp.algorithms.", "tp.testing.")):
            continue
        for name, parameter in inspect.signature(function).parameters.items():
            kind = str(parameter.annotation)
            if parameter.kind is parameter.VAR_POSITIONAL:
                continue
            if kind in AXES:
                found[f"{path}: {name}"] = function, name, (*FAR, (0, 77), [-78])
            elif name in NAMES_OF_AXES and "int" in kind:
                found[f"{path}: {name}"] = function, name, FAR
            elif any(each in kind for each in SIZES):
                found[f"{path}: {name}"] = function, name, (-78, (-78,))
            elif kind in INTEGERS and path not in OF_THE_PROGRAM:
                found[f"{path}: {name}"] = function, name, FAR[1:]
    return found


OF_THE_PROGRAM = {"tp.register_backend", "tp.time"}  # they compute nothing
NUMBERS = _numbers()


def test_the_numbers_include_the_usual_ones() -> None:
    usual = {"tp.sum: axis", "tp.quantize: axis", "tp.topk: k", "tp.one_hot: depth", "tp.diff: n"}
    assert {*usual, *BY_DESIGN} <= NUMBERS.keys()


def _as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """Return what an argument holds, if it is an array that has axes."""
    try:
        array = value.numpy() if isinstance(value, tp.Tensor) else np.asarray(value)
    except (TypeError, ValueError):
        return None
    return array if array.dtype.kind in "fiubc" and array.ndim else None


PARTS: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "a number": lambda x: x.reshape(-1)[0] if x.size else x,
    "one slice": lambda x: x[:1],
    "one element": lambda x: x[(slice(0, 1),) * x.ndim],
    "no slice": lambda x: x[:0],
    "no element": lambda x: x[..., :0],
}


def _variants(function: Callable[..., Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the arguments of the example, and changed ones, each with the change in words."""
    call = example_call(function)
    assert call is not None, "it needs an example"
    parameters = inspect.signature(function).parameters
    given = inspect.signature(function).bind(*call[0], **call[1]).arguments
    yield "the example", given
    tensors = [name for name in given if "ArrayLike" in str(parameters[name].annotation)]
    for what, part in PARTS.items():
        for names in ([name] for name in tensors) if len(tensors) > 1 else ():
            yield from _changed(given, names, what, part)
        yield from _changed(given, tensors, what, part)
    for name, value in given.items():
        if isinstance(value, list) and len(value) > 1 and _as_array(value) is None:
            yield f"one member of {name}", {**given, name: value[:1]}
    for name, parameter in parameters.items():
        kind = str(parameter.annotation)
        if name in given and parameter.default is not inspect.Parameter.empty:
            yield f"without {name}", {key: x for key, x in given.items() if key != name}
        if kind in INTEGERS:
            yield from ((f"{name} {number}", {**given, name: number}) for number in (0, 1))
        if kind == "bool":
            yield f"other {name}", {**given, name: not given.get(name, parameter.default)}


def _changed(
    given: dict[str, Any], names: list[str], what: str, part: Callable[[Any], Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    arrays = {name: array for name in names if (array := _as_array(given[name])) is not None}
    if arrays:
        yield (
            f"{what} of {', '.join(arrays)}",
            {**given, **{name: part(x) for name, x in arrays.items()}},
        )


def _accepted(function: Callable[..., Any], wanted: str, number: Any) -> list[str]:
    """Return the changes with which a function takes a number, or raises an error of others."""
    accepted = []
    for what, arguments in _variants(function):
        bound = inspect.signature(function).bind_partial()
        given = {**arguments, wanted: number}
        bound.arguments.update(
            {name: given[name] for name in inspect.signature(function).parameters if name in given}
        )
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                function(*bound.args, **bound.kwargs)
            except TensorplugError:
                continue
            except Exception as error:  # noqa: BLE001  # it is reported
                accepted.append(f"{what}: {error!r}")
            else:
                accepted.append(what)
    return accepted


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_out_of_range_are_refused(name: str) -> None:
    function, argument, numbers = NUMBERS[name]
    accepted = {str(number): _accepted(function, argument, number) for number in numbers}
    if name in BY_DESIGN:
        assert all(accepted.values()), "the exception is not needed"
    else:
        assert not any(accepted.values()), accepted


def test_the_axis_of_a_scale_is_checked_without_one() -> None:
    for function in (tp.quantize, tp.fake_quantize):
        with pytest.raises(OutOfRangeError, match="axis"):
            function(np.ones((2, 3), np.float32), 0.5, axis=7)
    with pytest.raises(OutOfRangeError, match="axis"):
        tp.dequantize(np.ones((2, 3), np.int8), 0.5, axis=-3)
