"""The gradient checks are tight: a slightly wrong rule fails at one of its points."""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.gradient_points import POINTS, RULES, as_function, has_rule

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.rule_entries import cotangent_names
from tensorplug.tensors.tree import flatten
from tensorplug.testing import check_grads

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.support.samples import Case

    Rule = Callable[..., Any]


def size(case: Case) -> int:
    """Return how many elements are differentiated."""
    given = [case.inputs[name] for name in case.wrt]
    return sum(x.size for item in given for x in (item if isinstance(item, list) else [item]))


pytestmark = pytest.mark.usefixtures("on_the_cpu")

AT = defaultdict(list)
for case in sorted(POINTS, key=lambda case: size(case) or 10**6):  # small ones first, not empty
    for name in case.wrt:
        AT[case.kernel, name].append(case)
NOTHING = {("Imag", "input")}  # of real numbers it is 0, and so is its derivative
CHECKED = sorted(key for key in AT if has_rule(*key, dt.float64) and key not in NOTHING)


def scaled(rule: Rule, _: set[str]) -> Rule:
    """Return the rule off by a ten-thousandth."""

    @functools.wraps(rule)
    def mutant(*args: Any, **given: Any) -> Any:
        return tp.tree_map(lambda gradient: gradient * (1 + 1e-4), rule(*args, **given))

    return mutant


def frozen(rule: Rule, cotangents: set[str]) -> Rule:
    """Return a rule that gives the right numbers, but does not follow what it is made of."""
    asks = inspect.signature(rule)

    @functools.wraps(rule)
    def mutant(*args: Any, **given: Any) -> Any:
        bound = asks.bind(*args, **given)
        for name, value in bound.arguments.items():
            if name not in cotangents:
                bound.arguments[name] = _stopped(value)
        return rule(*bound.args, **bound.kwargs)

    return mutant


def _stopped(value: Any) -> Any:
    if isinstance(value, list):
        return [_stopped(item) for item in value]
    return tp.stop_gradient(value) if isinstance(value, tp.Tensor) else value


def noticed(key: tuple[str, str], mutate: Callable[[Rule, set[str]], Rule]) -> bool:
    entry = RULES[key]
    assert entry.rule
    mutant = mutate(entry.rule, set(cotangent_names(entry.spec)))
    with tp.register_gradient(*key, mutant, override=True):
        return any(fails(case) for case in AT[key])


LENGTHY = ("LSTMGrad", "GRUGrad")  # differences of many gates


def fails(case: Case) -> bool:
    f, args = as_function(case)
    try:
        check_grads(f, args, order=2)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=[pytest.mark.slow] if key[0] in LENGTHY else []) for key in CHECKED],
    ids="-".join,
)
def test_a_rule_off_by_a_ten_thousandth_is_noticed(key: tuple[str, str]) -> None:
    assert noticed(key, scaled)


@pytest.mark.slow
@pytest.mark.parametrize("key", CHECKED, ids="-".join)
def test_a_rule_that_cannot_be_differentiated_is_noticed(key: tuple[str, str]) -> None:
    """It is noticed wherever the first derivative changes; plain differences show that."""
    assert noticed(key, frozen) == any(curved(case, key[1]) for case in AT[key])


def curved(case: Case, name: str) -> bool:
    """Return whether the derivative by input ``name`` changes when the inputs do."""
    f, args = as_function(case)
    random = np.random.default_rng(0)
    own = [
        _steps(argument, random, moved=which == name)
        for which, argument in zip(case.wrt, args, strict=True)
    ]
    every = [_steps(argument, random, moved=True) for argument in args]

    def at(first: int, second: int) -> list[np.ndarray]:
        moved = tp.tree_map(lambda x, u, v: x + first * u + second * v, args, own, every)
        return [tensor.numpy() for tensor in flatten(f(*moved))[0]]

    corners = zip(at(1, 1), at(1, -1), at(-1, 1), at(-1, -1), strict=True)
    return any(np.abs(a - b - c + d).max(initial=0) > 1e-11 for a, b, c, d in corners)


def _steps(given: Any, random: np.random.Generator, *, moved: bool) -> Any:
    return tp.tree_map(lambda x: 2**-10 * moved * random.uniform(-1, 1, x.shape), given)
