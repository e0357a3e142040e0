"""Forward mode beside the other transformations, and what a function may do inside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import same, tensor

import tensorplug as tp
from tensorplug.contract import inference
from tensorplug.contract.owner import Owner
from tensorplug.contract.rules import GradientTable, TangentTable
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import DecompositionTable, KernelTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.eager import EAGER
from tensorplug.errors import (
    ArgumentError,
    GradientError,
    GradientNotFoundError,
    RegistrationError,
)
from tensorplug.plugin import specs

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([0.3, -0.7, 1.9], np.float32)
T = np.array([1.0, -2.0, 0.5], np.float32)


def along(f: Any, direction: Any = T) -> Any:
    return lambda x: tp.jvp(f, (x,), (tp.asarray(direction),))[1]


def summed(f: Any) -> Any:
    return lambda x: tp.sum(f(x))


def f(x: Any) -> Any:
    return tp.sin(x) * x


SLOPE, BEND = np.cos(X) * X + np.sin(X), 2 * np.cos(X) - X * np.sin(X)

# what, a function of X, its value: each transformation inside and around each other one
NESTED: list[tuple[str, Any, Any]] = [
    ("jvp of grad", along(tp.grad(summed(f))), BEND * T),
    ("grad of jvp", tp.grad(summed(along(f))), BEND * T),
    ("jvp of jvp", along(along(f)), BEND * T * T),
    ("compile of jvp", tp.compile(along(f)), SLOPE * T),
    ("jvp of compile", along(tp.compile(f)), SLOPE * T),
    ("vmap of jvp", tp.vmap(along(f, 1.0)), SLOPE),
    ("jvp of vmap", along(tp.vmap(f)), SLOPE * T),
    ("compile of vmap of jvp", tp.compile(tp.vmap(along(f, 1.0))), SLOPE),
    ("compile of jvp of grad", tp.compile(along(tp.grad(summed(f)))), BEND * T),
    ("jvp of compile of grad", along(tp.compile(tp.grad(summed(f)))), BEND * T),
    ("grad of compile of jvp", tp.grad(summed(tp.compile(along(f)))), BEND * T),
    ("vmap of jvp of grad", tp.vmap(along(tp.grad(f), 1.0)), BEND),
    ("grad of vmap of jvp", tp.grad(summed(tp.vmap(along(f, 1.0)))), BEND),
    ("jvp of vmap of grad", along(tp.vmap(tp.grad(f))), BEND * T),
    ("jvp of checkpoint", along(tp.checkpoint(f)), SLOPE * T),
    ("grad of jvp of checkpoint", tp.grad(summed(along(tp.checkpoint(f)))), BEND * T),
    ("jvp of grad of checkpoint", along(tp.grad(summed(tp.checkpoint(f)))), BEND * T),
    ("jvp of vjp", along(lambda x: tp.vjp(f, x)[1](tp.ones(3))[0]), BEND * T),
    ("jvp of jacobian", along(lambda x: tp.sum(tp.jacobian(f)(x), axis=1)), BEND * T),
    ("jvp of jacfwd", along(lambda x: tp.sum(tp.jacfwd(f)(x), axis=1)), BEND * T),
    ("jacfwd of jacfwd", lambda x: tp.sum(tp.jacfwd(tp.jacfwd(f))(x), axis=(1, 2)), BEND),
    ("jvp of scan",
     along(lambda x: tp.scan(lambda c, _: (c * x, c), x, length=2)[0]), 3 * X**2 * T),
    ("compile of jvp of scan",
     tp.compile(along(lambda x: tp.scan(lambda c, _: (c * x, c), x, length=2)[0])),
     3 * X**2 * T),
]  # fmt: skip


@pytest.mark.parametrize("row", NESTED, ids=[row[0] for row in NESTED])
def test_transformations_nest_with_jvp(row: Any) -> None:
    _, nested, expected = row
    x = tensor(X)
    result = nested(x)
    assert (result.dtype, result.shape) == (tp.float32, np.shape(expected))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)
    assert current_context().interpreter is EAGER
    assert result._node is None


# A gradient that is not the function's own, to be seen: that of x**2 is |x|.
own = tp.custom_grad(lambda x: (x * x, lambda dy: dy * tp.abs(x)))
SIGN = np.sign(X)

CUSTOM: list[tuple[str, Any, Any]] = [
    ("jvp", along(own), np.abs(X) * T),
    ("jvp of grad", along(tp.grad(summed(own))), SIGN * T),
    ("grad of jvp", tp.grad(summed(along(own))), SIGN * T),
    ("jvp of jvp", along(along(own)), SIGN * T * T),
    ("compile of jvp", tp.compile(along(own)), np.abs(X) * T),
    ("vmap of jvp", tp.vmap(along(own, 1.0)), np.abs(X)),
    ("of a tensor that is not the argument", along(lambda x: own(tensor(T)) * x), T * T * T),
]


@pytest.mark.parametrize("row", CUSTOM, ids=[row[0] for row in CUSTOM])
def test_custom_gradients(row: Any) -> None:
    _, nested, expected = row
    same(nested(tensor(X)), expected)


def test_the_body_of_a_custom_gradient_needs_no_derivative() -> None:
    rounded = tp.custom_grad(lambda x: (tp.round(x), lambda dy: dy))
    same(along(rounded)(tensor(X)), T)
    two = tp.custom_grad(lambda a, b: (a * b, lambda dy: (dy * 2.0, dy * 3.0)))
    same(tp.jvp(two, (X, X), (T, T))[1], 5 * T)
    same(along(lambda x: two(x, 1.0))(tensor(X)), 2 * T)


def test_a_custom_gradient_that_captures_a_tensor() -> None:
    def g(x: tp.Tensor) -> tp.Tensor:
        return tp.custom_grad(lambda y: (y * x, lambda dy: dy))(x)

    with pytest.raises(ArgumentError, match="depends on a tensor that is being differentiated"):
        along(g)(tensor(X))


# What a function may do ------------------------------------------------------------------


def test_it_may_read_the_primals() -> None:
    def g(x: tp.Tensor) -> tp.Tensor:
        assert x.tolist() == pytest.approx(X.tolist())
        assert "0.3" in repr(x)
        return x * 2.0 if float(x[0]) > 0 else x

    same(along(g)(tensor(X)), 2 * T)


def test_it_may_read_primals_on_another_device() -> None:
    def f(x: Any) -> Any:
        with tp.use_backend("minimal"):
            return x * x if x.numpy()[0] < 1.0 else x

    same(along(f)(tensor(X)), 2 * X * T)


def test_integers_and_stopped_tensors_have_no_tangent() -> None:
    g = lambda x: x * tp.astype(tp.astype(x * 2.0, tp.int32), tp.float32)  # noqa: E731
    same(along(g)(tensor(X)), T * [0, -1, 3])
    h = lambda x: x * tp.stop_gradient(x)  # noqa: E731
    same(along(along(h))(tensor(X)), np.zeros(3))
    same(along(tp.grad(summed(h)))(tensor(X)), np.zeros(3))


def test_variables_inside() -> None:
    weight = tp.Variable(tensor(T), name="weight")
    same(along(lambda x: x * weight)(tensor(X)), T * T)

    def loss() -> tp.Tensor:
        return tp.sum(tp.jvp(lambda x: x * x * weight, (X,), (tp.ones(3),))[1])

    result = tp.variable_grads(loss, [weight])
    same(result.grads["weight"], 2 * X)
    with pytest.raises(ArgumentError, match="assigns a tensor that depends on its arguments"):
        along(lambda x: weight.assign(x) or x)(tensor(X))


def test_tidy_inside_and_around() -> None:
    def g(x: tp.Tensor) -> tp.Tensor:
        return tp.tidy(lambda: tp.exp(x) * 2.0)

    same(along(g)(tensor(X)), 2 * np.exp(X) * T)
    with tp.tidy():
        y, y_dot = tp.jvp(g, (tensor(X),), (tensor(T),))
    assert y.is_disposed
    assert y_dot.is_disposed


def test_a_tensor_of_the_function_does_not_work_outside() -> None:
    kept = []
    along(lambda x: kept.append(x) or x)(tensor(X))
    for use in (lambda x: x + 1.0, lambda x: x.numpy(), tp.grad(tp.sum)):
        with pytest.raises(ArgumentError, match="jvp: a tensor of a call of the function is used"):
            use(kept[0])


def test_complex_numbers() -> None:
    z, u = np.array([1 + 2j, -0.5j], np.complex64), np.array([0.5 - 1j, 2.0], np.complex64)
    push = lambda f: tp.jvp(f, (z,), (u,))[1]  # noqa: E731
    same(push(lambda z: z * z), 2 * z * u, dtype=tp.complex64)
    same(push(tp.conj), np.conj(u), dtype=tp.complex64)
    same(push(tp.real), u.real)
    same(push(tp.abs), (np.conj(z) * u).real / np.abs(z))
    same(push(lambda z: tp.complex(tp.imag(z), tp.real(z))), u.imag + 1j * u.real,
         dtype=tp.complex64)  # fmt: skip


# Jacobians -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_jacfwd_is_the_jacobian(shape: tuple[int, ...]) -> None:
    x = np.linspace(-1, 2, int(np.prod(shape))).reshape(shape)
    a = np.arange(6.0).reshape(2, 3)

    def g(p: Any, scale: Any) -> Any:
        return {
            "sum": tp.sum(tp.sin(p["x"])),
            "all": tp.expand_dims(p["x"] * scale, axis=0) + a[0, 0],
        }

    args = ({"x": tp.asarray(x)}, tp.asarray(0.5, dtype=tp.float64))
    for argnums in (0, 1, (1, 0)):
        forward = tp.jacfwd(g, argnums, unconnected="zeros")(*args)
        reverse = tp.jacrev(g, argnums, unconnected="zeros")(*args)
        leaves, build = tp.plugin.tree.flatten(forward)
        others, _ = tp.plugin.tree.flatten(reverse)
        assert repr(build([0] * len(leaves))) == repr(tp.tree_map(lambda _: 0, reverse))
        for one, other in zip(leaves, others, strict=True):
            assert one.type == other.type
            np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-12)


def test_jacfwd_of_complex_numbers() -> None:
    z = np.array([1 + 2j, -0.5j], np.complex64)
    same(tp.jacfwd(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z), dtype=tp.complex64)
    norm = lambda z: tp.sum(tp.abs(z) ** 2.0)  # noqa: E731
    same(tp.jacfwd(norm)(z), 2 * z, dtype=tp.complex64)
    x = np.array([0.5, -2.0], np.float32)
    same(tp.jacfwd(lambda x: tp.exp(x * 1j))(x), np.diag(1j * np.exp(1j * x)), dtype=tp.complex64)


def test_jacfwd_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorplug.autodiff import directional

    monkeypatch.setattr(directional, "MOST_ELEMENTS", 20)
    x = np.linspace(0, 1, 9).astype(np.float32)
    same(tp.jacfwd(tp.exp)(x), np.diag(np.exp(x)))


def test_jacfwd_says_what_is_not_connected() -> None:
    from tensorplug.errors import DTypeError, NotConnectedError

    with pytest.raises(NotConnectedError, match=r"jacfwd: no differentiable path leads from argum"
                       r"ent 1\['b'\] \(float32\[3\]\) to the result"):  # fmt: skip
        tp.jacfwd(lambda a, _: a * 2.0, (0, 1))(X, {"b": X})
    same(tp.jacfwd(lambda a, _: a * 2.0, 1, unconnected="zeros")(tensor(X), X), np.zeros((3, 3)))
    with pytest.raises(DTypeError, match=r"argument 0 is float32\[3\]; with holomorphic=True"):
        tp.jacfwd(f, holomorphic=True)(X)
    with pytest.raises(DTypeError, match="the result must be real"):
        tp.jacfwd(lambda z: z * z)(X.astype(np.complex64))


# Kernels of third parties ----------------------------------------------------------------

TWICE = KernelSpec("Twice", ("x",), inference.same, promote=("x",))


def run_twice(**tables: Any) -> Any:
    """Return jvp of a kernel of a plugin with these tables."""
    kernels = KernelTable()
    kernels.register(TWICE)(lambda x: x + x)
    registry = engine_of(current_context()).registry
    pairs = [("cpu", entry) for entry in kernels]
    with registry.add(Owner("a plugin"), kernels=pairs, **tables):
        return tp.jvp(lambda x: dispatch(TWICE, x), (tp.asarray(X),), (tp.asarray(T),))[1].numpy()


def test_a_plugins_kernel_needs_a_rule_for_jvp() -> None:
    with pytest.raises(GradientNotFoundError, match="kernel 'Twice' has no derivative with"):
        run_twice()
    gradients = GradientTable()
    gradients.wrt(TWICE, "x")(lambda dy: dy * 3.0)  # not 2, to be seen
    np.testing.assert_allclose(run_twice(rules=gradients), 3 * T)
    tangents = TangentTable()
    tangents.wrt(TWICE, "x")(lambda x_dot: x_dot * 5.0)
    np.testing.assert_allclose(run_twice(rules=[*gradients, *tangents]), 5 * T)
    np.testing.assert_allclose(run_twice(rules=tangents), 5 * T)
    linear = TangentTable()
    linear.linear(TWICE, "x")
    np.testing.assert_allclose(run_twice(rules=linear), 2 * T)
    elementwise = TangentTable()
    elementwise.elementwise(TWICE)
    with pytest.raises(GradientNotFoundError, match="kernel 'Twice' has no derivative with"):
        run_twice(rules=elementwise)  # it says how to use a gradient rule, which is missing
    np.testing.assert_allclose(run_twice(rules=[*gradients, *elementwise]), 3 * T)
    decompositions = DecompositionTable()
    decompositions.of(TWICE)(lambda x: x * 7.0)
    np.testing.assert_allclose(run_twice(decompositions=decompositions), 7 * T)


WRONG: list[tuple[str, Any, str]] = [
    ("no tensor", lambda x_dot: x_dot.ndim * 3.0, "the tangent of 'Twice' is float, not a tensor"),
    ("shape", lambda x_dot: x_dot[:2], r"'Twice' is float32\[2\], but must be float32\[3\]"),
    ("dtype", lambda x_dot: x_dot > 0, r"'Twice' is bool\[3\], but must be float32\[3\]"),
]


@pytest.mark.parametrize("row", WRONG, ids=[row[0] for row in WRONG])
def test_rules_that_return_something_else(row: Any) -> None:
    _, rule, message = row
    tangents = TangentTable()
    tangents.wrt(TWICE, "x")(rule)
    with pytest.raises(GradientError, match=message):
        run_twice(rules=tangents)


def test_tables_are_checked_when_they_are_filled() -> None:
    tangents = TangentTable()
    for fill, message in (
        (
            lambda: tangents.wrt(TWICE, "y")(lambda y_dot: y_dot),
            "'y' is not an input; inputs are x",
        ),
        (
            lambda: tangents.wrt(TWICE, "x")(lambda dy: dy),
            "unknown parameters dy; possible are x_d",
        ),
        (lambda: tangents.linear(TWICE, "x", axis=0), "'axis' is not an attribute"),
        (lambda: tangents.linear(TWICE), "nothing is not an input"),
        (
            lambda: tangents.elementwise(specs.TOP_K),
            "it has several outputs, so it is not elementw",
        ),
    ):
        with pytest.raises(RegistrationError, match=message):
            fill()
    tangents.linear(TWICE, "x")
    with pytest.raises(
        RegistrationError, match="tangent of 'Twice' along 'x' is in this table tw"
    ):
        tangents.elementwise(TWICE)


def test_the_programs_own_gradient_replaces_the_tangent_rule() -> None:
    with tp.register_gradient("Sum", "x", lambda dy, x: tp.broadcast_to(dy * 4.0, x.shape),
                              override=True):  # fmt: skip
        same(along(tp.sum)(tensor(X)), 4 * T.sum())
    same(along(tp.sum)(tensor(X)), T.sum())


# Narrow floats ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16], ids=str)
@pytest.mark.parametrize(
    "of", [tp.tanh, tp.atan, tp.nn.softplus, tp.nn.gelu, tp.nn.log_softmax, tp.prod, tp.sum]
)
def test_tangents_of_narrow_floats_are_rounded_once(of: Any, dtype: tp.DType) -> None:
    random = np.random.default_rng(0)
    x, t = (tp.asarray(random.standard_normal(8), dtype=tp.float64) for _ in range(2))
    narrow = [tp.astype(each, dtype) for each in (x, t)]
    wide = [tp.astype(each, tp.float64) for each in narrow]
    result = tp.jvp(of, narrow[:1], narrow[1:])[1]
    right = tp.jvp(of, wide[:1], wide[1:])[1].numpy()
    assert result.dtype is dtype
    error = np.abs(tp.astype(result, tp.float64).numpy() - right)
    assert error.max() <= np.abs(right).max() * dtype.eps
