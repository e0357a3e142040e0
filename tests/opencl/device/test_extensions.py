"""The functions for third parties, against NumPy in float64 or exact integers."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import KernelRefusedError, RegistrationError
from tensorplug.plugin import KernelSpec, dispatch, inference
from tensorplug.testing import isolated_engine
from tensorplug_opencl import extensions
from tensorplug_opencl.extensions import Formula, elementwise, elementwise_multiple, program
from tensorplug_opencl.faults import BuildError

pytestmark = pytest.mark.usefixtures("context")  # skips where there is no device


def run(backend, formula, arrays, constants=None, out=None, **options):
    """Prepare and run an elementwise kernel on arrays by name."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    types = {name: TensorType(dt.of(a.dtype), a.shape) for name, a in arrays.items()}
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    made = TensorType(out or dt.of(next(iter(arrays.values())).dtype), shape)
    call = elementwise(backend, "Own", formula, types, made, constants, **options)
    result = call(*(backend.from_host(array) for array in arrays.values()))
    assert backend.describe(result) == made
    return backend.to_host(result)


def test_the_documented_examples():
    with isolated_engine("opencl"):
        actual = doctest.testmod(extensions)
    assert (actual.attempted > 10, actual.failed) == (True, 0)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.float16], ids=str)
def test_one_program_serves_all_numbers_and_shapes(backend, dtype):
    if dtype not in backend.dtypes:
        pytest.skip(f"the device has no {dtype}")
    for slope, shape in ((0.3, (2, 3)), (-7.0, (40,)), (float("nan"), (1,)), (1e-3, (2, 0))):
        x = np.linspace(-2, 2, int(np.prod(shape))).reshape(shape).astype(dtype.numpy)
        actual = run(backend, "x > 0 ? x : slope * x", {"x": x}, {"slope": slope})
        rounded = dtype.numpy.type(slope).astype(np.float64)
        expected = np.where(x > 0, x, rounded * x.astype(np.float64)).astype(dtype.numpy)
        np.testing.assert_array_equal(actual, expected)
    assert backend.memory()["programs"] == 1


def test_inputs_are_broadcast(backend):
    a = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    b = np.arange(4, dtype=np.float32).reshape(4, 1)
    actual = run(backend, "a * scale + b", {"a": a, "b": b}, {"scale": 2})
    np.testing.assert_array_equal(actual, a * 2 + b)


VARIANTS = Formula("x + c + 1", signed="x - c", unsigned="x * c", ring=True)


@pytest.mark.parametrize(
    ("x", "constant", "expected"),
    [
        (np.float32(2.5), 2, np.float32(5.5)),
        (np.int32(-(2**31)), 1, np.int32(2**31 - 1)),
        (np.int8(-100), 100, np.int8(56)),
        (np.int64(5), -(2**63), np.int64(-(2**63) + 5)),
        (np.uint16(40_000), 3, np.uint16(54_464)),
        (np.uint64(2**63), 3, np.uint64(2**63)),
    ],
    ids=lambda value: getattr(getattr(value, "dtype", None), "name", None),
)
def test_variants_by_kind_and_wrapping_integers(backend, x, constant, expected):
    actual = run(backend, VARIANTS, {"x": x}, {"c": constant})
    assert actual.dtype == expected.dtype
    assert actual == expected


@pytest.mark.parametrize(
    ("constant", "expected"),
    [(np.int64(2**40 + 1), 2**40 + 1), (np.uint8(255), 255), (np.bool_(True), 1)],
    ids=["int64", "uint8", "bool"],
)
def test_a_numpy_scalar_keeps_its_type(backend, constant, expected):
    x = np.zeros(2, np.float32)  # which has 24 bits
    actual = run(backend, "c", {"x": x}, {"c": constant}, out=dt.int64)
    np.testing.assert_array_equal(actual, [expected, expected])


@pytest.mark.parametrize("name", ["y", "y_at", "n", "i", "layout", "x_in", "x_at", "value_of"])
def test_any_name_may_be_used(backend, name):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    row = np.array([10, 20, 30], np.int32)
    as_constant = run(backend, f"x + {name}", {"x": x}, {name: 5})
    np.testing.assert_array_equal(as_constant, x + 5)
    as_input = run(backend, f"x + {name}", {"x": x, name: row})
    np.testing.assert_array_equal(as_input, x + row)


def test_functions_of_the_author_and_of_the_backend(backend):
    text = "A softer(A x, A by) { return logistic(x) * by; }"
    x = np.array([-30.0, 0.0, 2.0])
    if dt.float64 not in backend.dtypes:
        pytest.skip("the device has no float64")
    actual = run(backend, "softer(x, by)", {"x": x}, {"by": 3}, functions=text)
    np.testing.assert_allclose(actual, 3 / (1 + np.exp(-x)), rtol=1e-15)


X, INTS = np.zeros(2, np.float32), np.zeros(2, np.int8)


@pytest.mark.parametrize(
    ("arrays", "constants", "error", "message"),
    [
        ({"x": INTS}, {"c": 0.5}, KernelRefusedError, "'c' is 0.5, which does not fit int8"),
        ({"x": INTS}, {"c": 128}, KernelRefusedError, "'c' is 128, which does not fit int8"),
        ({"x": X}, {"c": 10**400}, KernelRefusedError, "which does not fit float32"),
        ({"x": X > 0}, {"c": 1}, KernelRefusedError, "'c' is 1, which does not fit bool"),
        ({"x": X}, {"c": np.complex64(1)}, KernelRefusedError, "real numbers, not with complex64"),
        ({"x": X}, {"c": "1"}, TypeError, "'c' must be a number, got '1'"),
        ({"x": X, "z": INTS}, {}, TypeError, r"one dtype, got x=float32\[2\], z=int8\[2\]"),
        ({"x": X}, {"x": 1}, ValueError, "'x' is both an input and a constant"),
        ({"x": X}, {"c d": 1}, ValueError, "'c d' is not a name in C"),
        ({"x": X}, {"double": 1}, BuildError, "refused program 'Own float32'"),
    ],
)
def test_impossible_arguments_are_refused(backend, arrays, constants, error, message):
    with pytest.raises(error, match=message):
        run(backend, "x", arrays, constants)


def test_elementwise_needs_an_input(backend):
    with pytest.raises(TypeError, match="got none"):
        elementwise(backend, "Own", "1", {}, TensorType(dt.float32, (2,)))


DIVIDE = """// divide
kernel void run(global const int *x, const long x_at, global const int *y, const long y_at,
                global int *quotient, const long q_at, global short *rest, const long r_at,
                const uint n) {
  const uint i = get_global_id(0);
  if (i >= n) return;
  quotient[q_at + i] = x[x_at + i] / y[y_at + i];
  rest[r_at + i] = x[x_at + i] % y[y_at + i];
}"""


def test_multiple_outputs_views_and_passes(backend):
    outs = [TensorType(dt.int32, (150,)), TensorType(dt.int16, (150,))]
    divide = program(backend, DIVIDE, 2, outs, [np.uint32(150)], items=150)
    x, y = np.arange(300, dtype=np.int32), np.arange(1, 301, dtype=np.int32)
    views = [backend.from_host(x).view((150,), 150), backend.from_host(y).view((150,), 3)]
    quotient, rest = divide(*views)
    assert [backend.describe(buffer) for buffer in (quotient, rest)] == outs
    np.testing.assert_array_equal(backend.to_host(quotient), x[150:] // y[3:153])
    np.testing.assert_array_equal(backend.to_host(rest), x[150:] % y[3:153])
    again, _ = divide(quotient, views[1])  # the output of one pass is the input of the next
    np.testing.assert_array_equal(backend.to_host(again), x[150:] // y[3:153] // y[3:153])


TOTAL = """// total
typedef struct { uint n; int first; } Given;
kernel void run(global const int *x, const long x_at, global int *y, const long y_at,
                const Given given) {
  if (get_global_id(0)) return;
  int total = given.first;
  for (uint i = 0; i < given.n; i++) total += x[x_at + i];
  y[y_at] = total;
}"""


@pytest.mark.parametrize("length", [0, 1, 1000])
def test_empty_inputs_and_structs(backend, length):
    struct = np.array([length, 7], np.int32)
    total = program(backend, TOTAL, 1, TensorType(dt.int32, ()), [struct], items=1, heavy=True)
    x = np.arange(length, dtype=np.int32)
    actual = backend.to_host(total(backend.from_host(x)))
    np.testing.assert_array_equal(actual, np.array(x.sum() + 7, np.int32))


@pytest.mark.parametrize("multiple", [False, True])
def test_empty_outputs_need_no_program(backend, multiple):
    nothing = TensorType(dt.int32, (0, 2))
    call = program(backend, TOTAL, 1, [nothing, nothing] if multiple else nothing, items=0)
    result = call(backend.from_host(np.zeros(3, np.int32)))
    actual = result if multiple else [result]
    assert [backend.describe(buffer) for buffer in actual] == [nothing] * (1 + multiple)
    assert backend.memory()["programs"] == 0


@pytest.mark.parametrize(
    ("inputs", "constants", "items", "error", "message"),
    [
        (1, [3], 1, TypeError, "constant 3 has no C type"),
        (1, [], 1, TypeError, "'total' takes 5 arguments, but .* 2 arrays and 0 constants"),
        (2, [np.zeros(2, np.int32)], 1, TypeError, "'total' takes 5 arguments.* 3 arrays and 1"),
        (1, [np.zeros(2, np.int32)], 0, ValueError, "items must be positive, got 0"),
    ],
)
def test_programs_that_do_not_fit(backend, inputs, constants, items, error, message):
    with pytest.raises(error, match=message):
        program(backend, TOTAL, inputs, TensorType(dt.int32, ()), constants, items=items)


@pytest.mark.parametrize("dtype", [dt.bfloat16, dt.complex64], ids=str)
def test_c_types_that_c_cannot_compute_with(dtype):
    with pytest.raises(KernelRefusedError, match=f"not with {dtype}"):
        extensions.c_type(dtype)


@pytest.mark.parametrize("dtype", sorted(dt.FIXED - dt.COMPLEX - {dt.bfloat16}, key=str), ids=str)
def test_c_types_have_the_size_of_the_dtype(backend, dtype):
    if dtype not in backend.dtypes:
        pytest.skip(f"the device has no {dtype}")
    text = f"""kernel void run(global int *y, const long y_at) {{
      if (!get_global_id(0)) y[y_at] = sizeof({extensions.c_type(dtype)});
    }}"""
    size = program(backend, text, 0, TensorType(dt.int32, ()), items=1)
    assert backend.to_host(size()) == dtype.itemsize


# Multiple results ------------------------------------------------------------------------------

# A result's name also occurs in the program, and a local variable's is an index there.
STATEMENTS = "const A i = x * scale + by; run = a_sqrt(i); n = i > 1 ? 1 : 0;"


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.float16], ids=str)
def test_multiple_results_are_computed_together(backend, dtype):
    if dtype not in backend.dtypes:
        pytest.skip(f"the device has no {dtype}")
    for shape in ((2, 3), (2049,), (0, 2), ()):
        x = np.linspace(0, 2, int(np.prod(shape))).reshape(shape).astype(dtype.numpy)
        by = np.full((1,) * (x.ndim + 1), 0.25, dtype.numpy)
        types = {name: TensorType(dtype, array.shape) for name, array in (("x", x), ("by", by))}
        outs = {"run": TensorType(dtype, shape), "n": TensorType(dt.int32, shape)}
        call = elementwise_multiple(backend, "Own", STATEMENTS, types, outs, {"scale": 2.0})
        root, above = (
            backend.to_host(buffer) for buffer in call(*map(backend.from_host, (x, by)))
        )
        inner = x.astype(np.float64) * 2 + 0.25
        assert (root.dtype, root.shape, above.shape) == (dtype.numpy, shape, shape)
        np.testing.assert_allclose(root, np.sqrt(inner), rtol=2 * np.finfo(dtype.numpy).eps)
        np.testing.assert_array_equal(above, inner > 1)


def test_impossible_multiple_results_are_refused(backend):
    two, three = TensorType(dt.float32, (2,)), TensorType(dt.float32, (3,))
    for inputs, outs, message in (
        ({"x": two}, {"a": two, "b": three}, r"one shape.*a=float32\[2\], b=float32\[3\]"),
        ({"x": three}, {"a": two}, r"one shape.*x=float32\[3\], a=float32\[2\]"),
        ({"x": two}, {"x": two}, r"\['x'\] name both a result and something else"),
    ):
        with pytest.raises(ValueError, match=message):
            elementwise_multiple(backend, "Own", "a = x;", inputs, outs)


@pytest.mark.parametrize("wrap", [lambda f: f, tp.compile], ids=["eager", "compiled"])
def test_a_kernel_for_numpy_arrays_is_told_the_right_form(wrap):
    spec = KernelSpec("Halve", ("x",), inference.same)
    with isolated_engine("opencl"), tp.register_kernel(spec, "opencl", lambda x: x / 2):
        call = wrap(lambda x: dispatch(spec, x))
        with pytest.raises(RegistrationError) as caught:
            call(tp.asarray([1.0, 2.0]))
    message = str(caught.value)
    assert message.startswith("Halve(x=float32[2]): the kernel of the running program must")
    assert (
        "uses a tensorplug_opencl.memory.buffers.DeviceBuffer as if it were a NumPy array"
        in message
    )
    assert "see the module tensorplug_opencl.extensions" in message
    assert "unsupported operand" in str(caught.value.__cause__)
