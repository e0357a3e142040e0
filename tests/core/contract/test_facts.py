"""Facts in specs: what they refuse, and what forward mode and ``vmap`` make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract.owner import Owner
from tensorplug.errors import RegistrationError
from tensorplug.plugin import KernelSpec, RuleTable, TensorType, attributes, dispatch
from tensorplug.testing import isolated_engine

X = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
T = np.array([[1.0, 0.5], [2.0, -1.0]], np.float32)
OWNER = Owner("a plugin")
AXIS = {"axis": attributes.integer(0)}


def first(x: TensorType, y: TensorType | None) -> TensorType:
    return x


def spec(**facts: Any) -> KernelSpec:
    return KernelSpec("Own", ("x", "y?"), first, attributes=AXIS, **facts)


def pushed(own: KernelSpec) -> Any:
    """Return the tangent of a kernel at X along T."""
    return tp.jvp(lambda x: dispatch(own, x), (tp.asarray(X),), (tp.asarray(T),))[1].numpy()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"linear": "x"}, "linear must be a tuple of names, got 'x'"),
    ({"linear": (1,)}, "linear must be a tuple of names"),
    ({"linear": ("z",)}, "linear names 'z', no input of it"),
    ({"linear": (("x", "z"),)}, "linear names 'z', no input of it"),
    ({"linear": ("x", ("x", "y"))}, "linear names an input twice"),
    ({"linear": ("x",), "linear_with": {"size": 0}}, "linear_with names 'size', no attribute"),
    ({"linear_with": {"axis": 0}}, "linear_with is for kernels that are linear"),
    ({"symmetric": ("axis",)}, "symmetric names 'axis', no input of it"),
    ({"fold": ("out",)}, "fold names 'out', no input of it"),
    ({"fold": ("x",), "leading": ()}, "it has fold or leading, not both"),
    ({"leading": ("x",)}, "leading names 'x', no attribute of it"),
    ({"leading": "axis"}, "leading must be a tuple of names, got 'axis'"),
    ({"elementwise": True, "outputs": ("a", "b")}, "elementwise is for kernels of one output"),
    ({"symmetric": ("x",), "outputs": ("outs[]",)}, "symmetric is for kernels of one output"),
]


@pytest.mark.parametrize(("facts", "message"), REFUSED)
def test_a_spec_refuses_facts_that_cannot_hold(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistrationError, match=f"kernel spec 'Own': {message}"):
        spec(**facts)


def test_a_kernel_with_an_expression_is_elementwise_unless_its_spec_denies_it() -> None:
    for given, meant in ((None, True), (True, True), (False, False)):
        made = KernelSpec("Own", ("x",), lambda x: x, expression="exp", elementwise=given)
        assert made.elementwise is meant
    assert spec().elementwise is False


@pytest.mark.parametrize(
    ("facts", "kernel", "meant"),
    [  # the tangent of a kernel at X along T
        ({"linear": ("x",)}, lambda x: 3 * np.cumsum(x, 1), 3 * np.cumsum(T, 1)),
        ({"linear": ("x",), "linear_with": {"axis": 1}}, lambda x, *, axis: x + 1 - axis, T),
        ({"elementwise": True}, lambda x: x**3, 3 * X**2 * T),
        ({"symmetric": ("x",)}, lambda x: x @ x.T, None),
    ],
)
def test_forward_mode_takes_the_facts_of_a_plugins_spec(
    facts: dict[str, Any], kernel: Any, meant: Any
) -> None:
    own = KernelSpec("Own", ("x",), lambda x: x, attributes=AXIS, **facts)
    with isolated_engine("cpu"), tp.register_kernel(own, "cpu", kernel):
        rule = {"elementwise": lambda dy, x: dy * 3 * x * x, "symmetric": lambda dy: dy * 7}
        for fact in facts.keys() & rule.keys():
            tp.register_gradient(own, "x", rule[fact])
        np.testing.assert_allclose(pushed(own), 7 * T if meant is None else meant)


@pytest.mark.parametrize(
    ("facts", "kernel", "calls"),
    [  # the shapes with which vmap calls a kernel for three examples of X
        ({}, lambda x: x * 2, [(2, 2)] * 3),
        ({"elementwise": True}, lambda x: x * 2, [(3, 2, 2)]),
        ({"leading": ()}, lambda x: np.cumsum(x, -1), [(3, 2, 2)]),
        ({"leading": ("axis",)}, lambda x, axis=0: np.cumsum(x, axis), [(3, 2, 2)]),
        ({"fold": ("x",)}, lambda x: np.cumsum(x, 1), [(6, 2)]),
    ],
)
def test_vmap_takes_the_facts_of_a_plugins_spec(
    facts: dict[str, Any], kernel: Any, calls: list[Any]
) -> None:
    own = KernelSpec("Own", ("x",), lambda x: x, attributes=AXIS, **facts)
    shapes: list[Any] = []

    def native(x: Any, *, axis: int) -> Any:
        shapes.append(x.shape)
        return kernel(x, axis) if "axis" in facts.get("leading", ()) else kernel(x)

    examples = np.stack([X, T, X - T])
    with isolated_engine("cpu"), tp.register_kernel(own, "cpu", native):
        result = tp.vmap(lambda x: dispatch(own, x))(tp.asarray(examples)).numpy()
    assert shapes == calls
    np.testing.assert_array_equal(result, [kernel(one) for one in examples])


def test_a_rule_of_a_table_comes_before_a_fact() -> None:
    own = KernelSpec("Own", ("x",), lambda x: x, linear=("x",), leading=())
    rules = RuleTable()
    rules.jvp(own)(lambda x_dot: x_dot * 5.0)
    with (
        isolated_engine("cpu") as engine,
        tp.register_kernel(own, "cpu", lambda x: x),
        engine.registry.add(OWNER, rules=rules),
    ):
        np.testing.assert_allclose(pushed(own), 5 * T)
        assert tp.explain(own).facts == {"linear": "x", "leading": "yes"}
