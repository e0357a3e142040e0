"""Programs as functions with one line for each call."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import pytest

from tensorplug.compile.programs.program import FlatCall
from tensorplug.compile.programs.straight_line import StraightLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Buffer:
    """Something that a weak reference can watch, as NumPy's arrays."""


def call(
    run: Callable[..., Any], inputs: Sequence[Any], outputs: tuple[int, ...], *, many: bool = False
) -> FlatCall:
    return FlatCall("Name", None, inputs, outputs, many, run)


def show(*given: Any) -> str:
    return repr(given)


SHAPES: list[tuple[str, list[FlatCall], int, dict[int, Any], list[int], list[Any]]] = [
    # what, calls, inputs, constants, outputs, results for the inputs "a", "b", ...
    ("nothing", [], 2, {}, [1, 0], ["b", "a"]),
    ("no input", [call(show, [], (0,))], 0, {}, [0], ["()"]),
    ("one input", [call(show, [0], (1,))], 1, {}, [1, 0], ["('a',)", "a"]),
    ("twice", [call(show, [0, 0], (1,))], 1, {}, [1], ["('a', 'a')"]),
    ("lists", [call(show, [[0, 1], 1, []], (2,))], 2, {}, [2], ["(['a', 'b'], 'b', [])"]),
    ("absent", [call(show, [None, 0], (1,))], 1, {}, [1], ["(None, 'a')"]),
    ("constants", [call(show, [1, 0], (2,))], 1, {1: "k"}, [1, 2], ["k", "('k', 'a')"]),
    ("pair", [call(divmod, [1, 2], (3, 0), many=True)], 0, {1: 9, 2: 4}, [0, 3], [1, 2]),
    ("one of many", [call(list, [0], (1,), many=True)], 1, {}, [1], ["a"]),
    ("none of many", [call(list, [], (), many=True)], 1, {}, [0], ["a"]),
]


@pytest.mark.parametrize(
    ("calls", "inputs", "constants", "outputs", "wanted"),
    [row[1:] for row in SHAPES],
    ids=[row[0] for row in SHAPES],
)
def test_forms_of_calls(
    calls: list[FlatCall], inputs: int, constants: dict[int, Any], outputs: list[int], wanted: Any
) -> None:
    line = StraightLine(calls, [[] for _ in calls], inputs, constants, outputs)
    assert line.run(["a", "b", "c"][:inputs], None) == wanted
    with pytest.raises(ValueError, match="values to unpack") as caught:
        line.run(["a", "b", "c"], None)
    assert line.find_failed(caught.value) is None


def test_buffers_are_freed_after_their_last_use() -> None:
    alive: list[list[bool]] = []
    made: list[weakref.ref[Buffer]] = []

    def make(*_: Any) -> Buffer:
        alive.append([known() is not None for known in made])
        buffer = Buffer()
        made.append(weakref.ref(buffer))
        return buffer

    given = [make(), make()]
    calls = [call(make, [0], (2,)), call(make, [2, 1], (3,)), call(make, [3], (4,))]
    line = StraightLine(calls, [[0], [2, 1], [3]], 2, {}, [4])
    (result,) = line.run(given, given)
    assert (given, result) == ([], made[4]())
    assert alive[2:] == [[True, True], [False, True, True], [False, False, False, True]]
    assert [known() is not None for known in made] == [False] * 4 + [True]


def test_errors_belong_to_the_call_that_raised_them() -> None:
    def fail(at: int) -> int:
        if at == 2:
            raise ZeroDivisionError
        return at + 1

    calls = [call(fail, [at], (at + 1,)) for at in range(4)]
    line = StraightLine(calls, [[at] for at in range(4)], 1, {}, [4])
    for start, position in ((2, 0), (1, 1), (-1, 3)):
        with pytest.raises(ZeroDivisionError) as caught:
            line.run([start], None)
        assert line.find_failed(caught.value) == position
    assert line.run([3], None) == [7]
    assert line.find_failed(ZeroDivisionError()) is None


def test_a_wrong_number_of_outputs_is_an_error_of_the_call() -> None:
    calls = [call(str, [0], (1,)), call(lambda _: [1], [1], (2, 3), many=True)]
    line = StraightLine(calls, [[], []], 1, {}, [3])
    with pytest.raises(ValueError, match="expected 2, got 1") as caught:
        line.run([0], None)
    assert line.find_failed(caught.value) == 1
