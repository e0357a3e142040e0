"""Explanations of functions: the kernels that they call, found without running one."""

from __future__ import annotations

import re

import pytest
from tests.core.support.public_functions import FUNCTIONS

import tensorplug as tp
from tensorplug.contract.spec import TensorType
from tensorplug.errors import TensorplugError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def of(*shape, dtype=tp.float32):
    return TensorType(dtype, shape)


def mean_square(x, w):
    return (x @ w).mean() ** 2


CALLS = [  # function, inputs, attributes, call, kernels in order
    (tp.matmul, [of(2, 3), of(3, 4)], {}, "matmul(float32[2,3], float32[3,4])", ["BatchMatMul"]),
    ("add", [of(2), 10], {}, "add(float32[2], 10)", ["Add"]),
    ("tp.nn.relu", [of(2)], {}, "relu(float32[2])", ["Relu"]),
    ("tensorplug.nn.relu", [of(2)], None, "relu(float32[2])", ["Relu"]),
    (
        "nn.conv2d",
        [of(1, 8, 8, 3), of(3, 3, 3, 4)],
        {"strides": 2, "pad": "same"},
        "conv2d(float32[1,8,8,3], float32[3,3,3,4], strides=2, pad='same')",
        ["Conv2D"],
    ),
    (
        tp.concat,
        [[of(2, 2), of(3, 2)]],
        {"axis": 0},
        "concat([float32[2,2], float32[3,2]], axis=0)",
        ["Concat"],
    ),
    (
        mean_square,
        [of(2, 3), of(3, 1)],
        {},
        "mean_square(float32[2,3], float32[3,1])",
        ["BatchMatMul", "Mean", "Pow"],
    ),
    (lambda x: x + x + x, [of(4)], {}, "<lambda>(float32[4])", ["Add", "Add"]),
    (lambda: tp.zeros((2,)), [], {}, "<lambda>()", ["Fill"]),
    (tp.vmap(tp.nn.relu), [of(5, 2)], {}, "relu(float32[5,2])", ["Relu"]),
    (len, [[of(2)]], {}, "len([float32[2]])", []),
]


@pytest.mark.parametrize(("function", "inputs", "attributes", "call", "kernels"), CALLS)
def test_the_kernels_of_a_call(function, inputs, attributes, call, kernels):
    with tp.profile() as profile:
        result = tp.explain(function, inputs, attributes)
    assert profile.kernel_names == []
    assert (result.call, result.how, result.backend, result.reason) == (call, "calls", "cpu", "")
    assert [inner.kernel for inner in result.inner] == kernels
    assert all(inner.how == "native" for inner in result.inner)
    head = str(result).splitlines()[0]
    assert head == f"{call} on backend 'cpu': calls{'' if kernels else ' no kernel'}"


def test_tensors_stand_for_their_types():
    x = tp.asarray([[1.0, 2.0]])
    assert tp.explain(tp.nn.softmax, [x]) == tp.explain(tp.nn.softmax, [of(1, 2)])


def test_decompositions_inside():
    with tp.testing.isolated_engine("cpu"):
        tp.unregister_kernel("Softmax", "cpu")
        [softmax] = tp.explain("nn.softmax", [of(2, 3)]).inner
    assert softmax.how == "decomposed"
    assert [call.kernel for call in softmax.inner] == ["Max", "Sub", "Exp", "Sum", "RealDiv"]


def test_further_calls_that_depend_on_data():
    def positive(x):
        y = x + 1
        return y * 2 if y > 0 else y

    result = tp.explain(positive, [of()])
    assert (result.how, [call.kernel for call in result.inner]) == ("calls", ["Add", "Greater"])
    assert re.match("its further calls depend on data: .", dict(result.steps)["unknown"])


IMPOSSIBLE = [  # function, inputs, reason, kernels so far
    (tp.matmul, [of(2, 3), of(2, 3)], "", ["BatchMatMul"]),  # the inner explanation says why
    (tp.squeeze, [of(2), 0], "squeeze: axis 0 of float32[2] must have length 1", []),
    (lambda x: (x + 1, 1 // 0), [of(2)], "it raises ZeroDivisionError", ["Add"]),
    (lambda x: lambda: x, [of(2)], "it returns a function", []),
]


@pytest.mark.parametrize(("function", "inputs", "reason", "kernels"), IMPOSSIBLE)
def test_a_call_that_is_not_possible(function, inputs, reason, kernels):
    result = tp.explain(function, inputs)
    assert result.how is None
    assert result.reason.startswith(reason)
    assert [call.kernel for call in result.inner] == kernels
    assert reason or result.inner[-1].how is None


BAD = [
    (lambda: tp.explain("matmull"), "no kernel and no function .* did you mean matmul"),
    (lambda: tp.explain("Negg"), "no kernel and no function .* did you mean Neg"),
    (lambda: tp.explain("grad"), "no function of tensors is called 'grad'"),
    (lambda: tp.explain("nn.grad"), "is called 'nn.grad'"),
    (lambda: tp.explain(tp.save), "explain: save is not a function of tensors"),
    (
        lambda: tp.explain("reshape", [of(2)]),
        "reshape: missing a required argument: 'shape'; .*--set",
    ),
    (
        lambda: tp.explain("sum", [of(2)], {"axs": 0}),
        "unexpected keyword argument 'axs'; it has x, a",
    ),
    (lambda: tp.explain("sum", of(2)), "sum: inputs must be a list, got TensorType"),
    (
        lambda: tp.explain("sum", [of(2)], [0]),
        "sum: attributes must be a mapping by name, got list",
    ),
    (lambda: tp.explain(lambda x: x), "its documentation has no call; pass the inputs of one"),
    (lambda: tp.explain("sum", dtype="real"), "explain: unknown dtype 'real'"),
    (lambda: tp.explain(tp.Tensor), "kernel must be a KernelSpec or its name, got <class"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_wrong_calls(call, message):
    with pytest.raises(TensorplugError, match=message):
        call()


NO_KERNEL = {  # of numbers alone, or of the host
    *("asarray", "broadcast_shapes", "ensure_shape", "logspace", "random.key"),
    *("fft.fftfreq", "fft.rfftfreq", "signal.cosine_window", "signal.enclosing_power_of_two"),
    *("signal.hamming_window", "signal.hann_window"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_call_in_the_documentation_of_each_function(name):
    result = tp.explain(name)
    assert result.how == "calls"
    assert bool(result.inner) is (name not in NO_KERNEL)
    assert all(call.how is not None for call in result.inner)


def test_the_dtype_of_the_call_in_the_documentation():
    assert tp.explain("nn.softmax", dtype="float64").inner[0].call.endswith("=float64[2])")
    result = tp.explain("nn.dropout", dtype="float16")
    assert result.call == "dropout(uint32[4], float16[6], 0.5)"  # floats alone


def test_attributes_change_the_call_in_the_documentation():
    result = tp.explain("nn.conv2d", attributes={"strides": 2})
    assert result.call == "conv2d(float32[1,3,3,1], float32[2,2,1,1], strides=2)"


def test_the_programs_that_a_backend_compiles(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "1")
    square = of(512, 512)
    first, second = (tp.explain(tp.nn.softmax, [square], source=True) for _ in range(2))
    assert first.inner[0].sources == second.inner[0].sources
    (source,) = first.inner[0].sources  # one group
    assert source.startswith("; Softmax\ndefine void @run(")
    assert source.rstrip() in str(first)
    assert tp.explain(tp.nn.softmax, [square]).inner[0].sources == ()
