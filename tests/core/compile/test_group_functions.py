"""Elementary functions in groups: single operations where the backend declares them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.compile.test_fusion import ROW, Compiled, Compiler, X

import tensorplug as tp
from tensorplug.contract.expressions import FUNCTIONS, linearize
from tensorplug.dispatch.context import Context, use_context
from tensorplug.errors import RegistrationError
from tensorplug_conformance.selftest.programs.engines import delegating

if TYPE_CHECKING:
    from collections.abc import Callable


class Declaring(Compiler):
    """A compiler with some functions."""

    def __init__(self, clean: Any, functions: frozenset[str], **given: Any) -> None:
        super().__init__(clean, **given)
        self.functions = functions


class Functions(Compiled):
    """An engine whose backend declares some functions, and has a kernel of Tanh or none."""

    def __init__(self, *functions: str, has_kernel: bool = False) -> None:
        super().__init__()
        make = partial(Declaring, functions=frozenset(functions))
        self.engine = delegating(partial(make, takes=self._decide, asked=self.asked))
        self.device = self.engine.open("cpu")
        if not has_kernel:
            self.engine.registry.remove_kernel("Tanh", "cpu")

    def program(self, f: Callable[..., Any], *arrays: Any) -> Any:
        with use_context(Context(self.engine, self.device)):
            return tp.compile(f).program(*map(tp.asarray, arrays))


def functions_of(group: Any) -> set[str]:
    return {node.op for node in linearize(group.expressions())} & FUNCTIONS.keys()


def bent(x: Any) -> Any:
    return tp.tanh(x * 2)


MANY = range(10, 100)  # calls of the decomposition


@pytest.mark.parametrize(
    ("declared", "has_kernel", "calls", "found"),
    [
        (("tanh",), False, [2], {"tanh"}),
        (("tanh", "exp"), True, [2], {"tanh"}),
        (("exp",), True, [2], set()),
        (("exp",), False, MANY, {"exp"}),
        ((), False, MANY, set()),
        ((), True, [2], set()),
    ],
)
def test_a_function_is_one_operation_where_it_is_declared(
    declared: tuple[str, ...], has_kernel: bool, calls: Any, found: set[str]
) -> None:
    compiled = Functions(*declared, has_kernel=has_kernel)
    (result,), _, (group,) = compiled.run(bent, X)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, np.tanh(2 * X.astype(np.float64)), rtol=1e-6)
    assert functions_of(group) == found
    assert len(compiled.program(bent, X).calls) in calls


def test_a_function_without_a_kernel_is_a_group_of_few_elements() -> None:
    compiled = Functions("tanh")
    (result,), _, groups = compiled.run(tp.tanh, ROW)
    np.testing.assert_allclose(result, np.tanh(ROW.astype(np.float64)), rtol=1e-6)
    assert [group.name for group in groups] == ["Tanh"]


@pytest.mark.parametrize(
    ("takes", "in_parts"), [(lambda _: False, 0), (lambda group: not functions_of(group), 1)]
)
def test_a_function_that_is_declined_is_spelled_out(takes: Any, in_parts: int) -> None:
    compiled = Functions("tanh")
    compiled.takes = takes
    (result,), _, groups = compiled.run(bent, X)
    np.testing.assert_allclose(result, np.tanh(2 * X.astype(np.float64)), rtol=1e-6)
    # By a program, whose calls are a group again.
    assert [group.name.startswith("Abs+Multiply+") for group in groups] == [True] * in_parts


def test_a_loop_on_few_elements_spells_functions_out() -> None:
    def run(x: Any) -> Any:
        return tp.fori_loop(0, 3, lambda _, y: tp.tanh(y), x)

    compiled = Functions("tanh")
    (result,), (plain,), _ = compiled.run(run, ROW)
    np.testing.assert_allclose(result, plain, rtol=1e-6)
    assert result.shape == ROW.shape


@pytest.mark.parametrize("takes", [True, False])
def test_a_function_without_a_kernel_is_traced_once_for_all_sizes(takes: bool) -> None:
    compiled = Functions("tanh")
    compiled.takes = lambda _: takes
    traced = []

    def f(x: Any) -> Any:
        traced.append(x.ndim)
        return bent(x)

    with use_context(Context(compiled.engine, compiled.device)):
        fused = tp.compile(f)
        for length in (20, 30, 5, 40, 20):
            x = np.linspace(-2, 2, length, dtype=np.float32)
            result = fused(tp.asarray(x)).numpy()
            np.testing.assert_allclose(result, np.tanh(2 * x.astype(np.float64)), rtol=1e-6)
    assert traced == [1]


def test_a_function_that_expressions_lack() -> None:
    with pytest.raises(RegistrationError, match=r"'cpu': functions may have acos, .*, got arctan"):
        Functions("tanh", "arctan")


def test_a_backend_that_does_not_say_which_functions_it_has() -> None:
    class Silent(Compiler):
        functions = property()  # type: ignore[assignment]  # raises AttributeError

        def __getattr__(self, name: str) -> Any:
            if name == "functions":
                raise AttributeError(name)
            return super().__getattr__(name)

    with pytest.raises(RegistrationError, match="CompilesGroups, but lacks functions"):
        delegating(partial(Silent, takes=lambda _: True, asked=[])).open("cpu")
