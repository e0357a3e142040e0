"""Registering, removing and listing at run time, through the public functions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.core.support.engines import expect, spec_of
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    BackendNotInstalledError,
    GradientNotFoundError,
    KernelNotFoundError,
    RegistrationError,
    TensorplugError,
)

pytestmark = pytest.mark.usefixtures("engine")


def triple(x):
    return x * 3


def test_an_op_of_ones_own():
    spec = spec_of("Triple")
    x = tp.asarray([1.0, 2.0])

    def f(x):
        return tp.run_kernel(spec, [x])

    with tp.register_kernel(spec, "memory", triple):
        expect(f(x), "float32", (2,), [3, 6])
        expect(tp.run_kernel("Triple", {"x": x}), "float32", (2,), [3, 6])
        with pytest.raises(GradientNotFoundError, match="'Triple' has no gradient with respect"):
            tp.grad(total(f))(x)
        with tp.register_gradient("Triple", "x", lambda dy: dy * 3):
            expect(tp.grad(total(f))(x), "float32", (2,), [3, 3])
            with tp.register_gradient(spec, "x", lambda dy: dy * 4, override=True):
                expect(tp.grad(total(f))(x), "float32", (2,), [4, 4])
            expect(tp.grad(total(f))(x), "float32", (2,), [3, 3])
        with tp.register_gradient(spec, "x", None), pytest.raises(TensorplugError):
            tp.grad(total(f))(x)
        assert "Triple" in tp.kernels_for("memory")
        assert "Triple" not in tp.kernels_for("other")
    with pytest.raises(KernelNotFoundError):
        f(x)


def test_unregistered_kernels_and_gradients_are_missing():
    x = tp.asarray([1.0])
    tp.unregister_kernel("Neg", "memory")
    with pytest.raises(KernelNotFoundError, match="native: not registered"):
        tp.negative(x)
    with pytest.raises(RegistrationError, match="'Neg' is not registered for backend 'memory'"):
        tp.unregister_kernel("Neg", "memory")
    tp.unregister_gradient("Multiply", "b")
    with pytest.raises(GradientNotFoundError, match=r"'Multiply' .* its input 'b'"):
        tp.grad(total(lambda x: x * x))(x)
    tp.unregister_gradient("Multiply")
    with pytest.raises(RegistrationError, match="no gradient of 'Multiply' is registered"):
        tp.unregister_gradient("Multiply")


def test_a_decomposition_of_ones_own():
    spec = spec_of("Quadruple")
    x = tp.asarray([1.0])
    with tp.register_decomposition(spec, lambda x: tp.add(x, x) * 2.0):
        expect(tp.run_kernel(spec, [x]), "float32", (1,), [4])
        assert tp.explain(spec).how == "decomposed"
        expect(tp.grad(total(lambda x: tp.run_kernel(spec, [x])))(x), "float32", (1,), [4])


def test_a_kernel_for_a_backend_that_is_not_loaded_yet(engine):
    x = tp.asarray([1.0])
    tp.register_kernel("Neg", "other", triple)
    assert [device.name for device in engine.devices.listed()] == ["memory"]
    with tp.use_backend("other"):
        expect(tp.negative(x), "float32", (1,), [3])
        tp.unregister_kernel("Neg", "other")
        expect(tp.negative(x), "float32", (1,), [-1])


def test_a_reopened_backend_keeps_what_was_registered(engine):
    with tp.register_kernel("Neg", "memory", triple, override=True):
        expect(tp.negative(tp.asarray([1.0])), "float32", (1,), [3])
        engine.devices.close("memory")
        expect(tp.negative(tp.asarray([1.0])), "float32", (1,), [3])


def test_describe_and_synchronize(engine):
    assert tp.describe_device() == "memory of memory"
    tp.synchronize()
    with tp.use_backend("other"):
        assert tp.describe_device() == "memory of other"
        tp.synchronize()
    assert [engine.devices.source.backends[name].synchronized for name in ("memory", "other")] == [
        1,
        1,
    ]


def test_memory_kept_for_reuse_is_given_back(engine):
    offers = engine.devices.source.offers
    offers["memory"], offers["other"] = {"trim": lambda: 5}, {"trim": lambda: 7}
    engine.open("memory"), engine.open("other")
    assert (tp.trim_memory(), tp.trim_memory("memory"), tp.trim_memory("other")) == (12, 5, 7)
    with pytest.raises(ArgumentError, match="no open device is called 'memory:1'"):
        tp.trim_memory("memory:1")


BAD = [
    (lambda: tp.register_kernel("Neg", "memory:1", triple), "pass its name, such as 'cpu', not"),
    (lambda: tp.register_kernel("Neg", None, triple), "pass its name, such as 'cpu', not None"),
    (lambda: tp.register_kernel("Negg", "memory", triple), "no kernel is called 'Negg'; did you"),
    (
        lambda: tp.register_kernel(5, "memory", triple),
        "kernel must be a KernelSpec or its name, got 5",
    ),
    (lambda: tp.register_kernel("Neg", "memory", triple), "already registered by memory-distri"),
    (
        lambda: tp.register_kernel("Add", "memory", triple),
        "triple has the parameters (x); it must",
    ),
    (lambda: tp.register_kernel("Neg", "memory", 5), "has no signature to read"),
    (lambda: tp.register_gradient("Neg", "y", triple), "'y' is not an input; inputs are x"),
    (
        lambda: tp.register_gradient("Neg", "x", triple),
        "the gradient of 'Neg' with respect to 'x'",
    ),
    (lambda: tp.register_decomposition("Neg", lambda y: y), "has the parameters (y)"),
    (lambda: tp.unregister_gradient("Neg", "y"), "no gradient of 'Neg' with respect to 'y'"),
    (lambda: tp.explain("Neg", np.ones(3)), "Neg: inputs must be a mapping by name, or a list"),
    (lambda: tp.explain("Neg", dtype="real"), "explain: unknown dtype 'real'"),
    (lambda: tp.explain("Neg", [[[1], [1, 2]]]), "explain: an input: nested lists must be rect"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_arguments(engine, call, message):
    assert tp.get_backend() == "memory"
    before = engine.registry.state
    with pytest.raises(TensorplugError, match=re.escape(message)):
        call()
    assert engine.registry.state is before


@pytest.mark.parametrize(
    "call", [tp.kernels_for, tp.set_backend, lambda b: tp.explain("Neg", backend=b)]
)
def test_a_backend_that_is_not_installed(call):
    with pytest.raises(BackendNotInstalledError, match="'none' is not installed"):
        call("none")
    with pytest.raises(ArgumentError, match="the name of a backend must be text"):
        call(5)


def test_half_a_capability_is_refused(engine):
    engine.devices.source.offers["memory"] = {"share_to_host": lambda buffer: buffer}
    with pytest.raises(RegistrationError, match="SharesHostMemory, but lacks share_from_host"):
        engine.open("memory")


DECORATORS = [  # the function that returns the decorator, the function to decorate, 3 -> ?
    (lambda spec: tp.register_kernel(spec, "memory"), triple, 9),
    (lambda spec: tp.register_kernel(spec, "memory", dtypes=[tp.float32]), triple, 9),
    (tp.register_decomposition, lambda x: x + x, 6),
    (lambda spec: tp.register_decomposition(spec, on_host=True), triple, 9),
]


@pytest.mark.parametrize(("make", "function", "expected"), DECORATORS)
def test_decorators(make, function, expected):
    spec, x = spec_of("Decorated"), tp.asarray([3.0])
    decorator = make(spec)
    assert decorator(function) is function
    expect(tp.run_kernel(spec, [x]), "float32", (1,), [expected])
    with pytest.raises(RegistrationError, match="is already registered by"):
        decorator(function)
    decorator.remove()
    decorator.remove()
    with pytest.raises(KernelNotFoundError):
        tp.run_kernel(spec, [x])
    with make(spec) as again:
        again(function)
        expect(tp.run_kernel(spec, [x]), "float32", (1,), [expected])
    with pytest.raises(KernelNotFoundError):
        tp.run_kernel(spec, [x])


def test_decorated_gradients():
    spec, x = spec_of("Decorated"), tp.asarray([3.0])

    def gradient():
        return tp.grad(lambda x: tp.sum(tp.run_kernel(spec, [x])))(x)

    with tp.register_kernel(spec, "memory", triple):
        decorator = tp.register_gradient(spec, "x")

        @decorator
        def rule(dy):
            return dy * 3

        expect(gradient(), "float32", (1,), [3])
        decorator.remove()
        with tp.register_gradient(spec, ["x"]) as joint:
            joint(lambda dy, wanted: dict.fromkeys(wanted, dy * 4))
            expect(gradient(), "float32", (1,), [4])
        with tp.register_gradient(spec, "x", None), pytest.raises(TensorplugError):
            gradient()  # None is a rule: there is no gradient


class Opaque:
    """A buffer that is no NumPy array."""

    def __init__(self, array):
        self.array = array


def opaque(engine):
    """Give the backend "memory" such buffers."""
    backend = engine.open("memory").backend
    backend.from_host = lambda array: Opaque(np.array(array))
    backend.to_host = lambda buffer: buffer.array

    def describe(buffer):
        if not isinstance(buffer, Opaque):
            raise TypeError(f"{buffer!r} is not opaque")
        return tp.TensorType(tp.float32, buffer.array.shape)

    backend.describe = describe


def doubled(x):
    return x * 2


def doubled_twice(x):
    return doubled(doubled(x))


FOR_ARRAYS = [
    (triple, "TypeError: unsupported operand type(s) for *: 'Opaque' and 'int'"),
    (lambda x: x.sum(), "AttributeError: 'Opaque' object has no attribute 'sum'"),
    (lambda x: x[0], "TypeError: 'Opaque' object is not subscriptable"),
    (
        lambda x: np.exp(x) + 0,
        "TypeError: loop of ufunc does not support argument 0 of type Opaque",
    ),
    (doubled_twice, "TypeError: unsupported operand type(s) for *: 'Opaque' and 'int'"),
]


@pytest.mark.parametrize(
    ("guide", "page"), [("the page", "the page"), (None, "its documentation")]
)
@pytest.mark.parametrize("prepares", [False, True])
@pytest.mark.parametrize(("function", "cause"), FOR_ARRAYS)
def test_a_kernel_that_takes_buffers_for_arrays(engine, function, cause, prepares, guide, page):
    if guide is not None:
        engine.devices.source.offers["memory"] = {"kernel_guide": guide}
    opaque(engine)
    spec = spec_of("ForArrays")

    def prepare(x):
        return function

    kernel = prepare if prepares else function
    with (
        tp.register_kernel(spec, "memory", kernel, prepares=prepares),
        pytest.raises(RegistrationError, match="ForArrays") as caught,
    ):
        tp.run_kernel(spec, [tp.asarray([1.0])])
    message = str(caught.value)
    assert message.startswith(
        "ForArrays(x=float32[1]): the kernel of the running program must compute with buffers of "
        f"backend 'memory', but it uses a {__name__}.Opaque as if it were a NumPy array ({cause}"
    )
    assert message.endswith(f"For kernels of this backend, see {page}")
    assert type(caught.value.__cause__).__name__ == cause.partition(":")[0]


OTHER_FAULTS = [  # that have nothing to do with buffers, and errors of kernels of the backend
    (lambda x: x.array.size + "1", TypeError),
    (lambda x: x.array.no_such_thing, AttributeError),
    (lambda x: {}[x], KeyError),
]


@pytest.mark.parametrize(("function", "kind"), OTHER_FAULTS)
def test_other_faults_of_a_kernel_stay_as_they_are(engine, function, kind):
    opaque(engine)
    spec = spec_of("Faulty")
    with tp.register_kernel(spec, "memory", function), pytest.raises(kind) as caught:
        tp.run_kernel(spec, [tp.asarray([1.0])])
    assert caught.type is kind
    assert caught.value.__notes__ == [
        "in kernel Faulty(x=float32[1]) of the running program on backend 'memory'"
    ]


def test_a_fault_of_a_backends_own_kernel_stays_as_it_is(engine):
    opaque(engine)
    with pytest.raises(TypeError, match="Opaque") as caught:
        tp.negative(tp.asarray([1.0]))  # NumPy's function of an Opaque
    assert caught.type is not RegistrationError


def test_a_kernel_that_returns_an_array_instead_of_a_buffer(engine):
    engine.devices.source.offers["memory"] = {"kernel_guide": "the page"}
    opaque(engine)
    spec = spec_of("Returning")
    with (
        tp.register_kernel(spec, "memory", lambda x: x.array),
        pytest.raises(TensorplugError, match=r"is not opaque\. For kernels .* see the page$"),
    ):
        tp.run_kernel(spec, [tp.asarray([1.0])])


def test_a_guide_that_is_no_text(engine):
    engine.devices.source.offers["memory"] = {"kernel_guide": 5}
    with pytest.raises(RegistrationError, match="'memory': kernel_guide must be a str, got int"):
        engine.open("memory")
